/* SPDX-License-Identifier: MIT */
/* decimal.c - see decimal.h. */
#include "src/import/decimal.h"

#include <math.h>
#include <string.h>

#include "src/import/lines.h"

enum { MAX_EXPONENT = 400 };

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Read digits from *at on and append them to value; returns their number. */
static size_t read_digits(struct piece piece, size_t *at, double *value)
{
	size_t first = *at;

	for (; *at < piece.n && is_digit(piece.at[*at]); (*at)++)
		*value = *value * 10 + (piece.at[*at] - '0');
	return *at - first;
}

/* Read "e+06" as 6; 0 if there is none. */
static bool read_exponent(struct piece piece, size_t *at, int *ret)
{
	bool is_negative;
	double value = 0;

	*ret = 0;
	if (*at == piece.n || (piece.at[*at] != 'e' && piece.at[*at] != 'E'))
		return true;
	(*at)++;
	is_negative = *at < piece.n && piece.at[*at] == '-';
	if (*at < piece.n && (piece.at[*at] == '-' || piece.at[*at] == '+'))
		(*at)++;
	if (read_digits(piece, at, &value) == 0 || value > MAX_EXPONENT)
		return false;
	*ret = is_negative ? -(int)value : (int)value;
	return true;
}

bool piece_decimal(struct piece piece, double *ret)
{
	bool is_negative = piece.n > 0 && piece.at[0] == '-';
	size_t at = is_negative, n_whole, n_part = 0;
	double value = 0;
	int exponent;

	n_whole = read_digits(piece, &at, &value);
	if (at < piece.n && piece.at[at] == '.') {
		at++;
		n_part = read_digits(piece, &at, &value);
	}
	if (n_whole + n_part == 0 || n_part > MAX_EXPONENT || !read_exponent(piece, &at, &exponent) || at != piece.n)
		return false;
	exponent -= (int)n_part;
	value = exponent < 0 ? value / pow(10, -exponent) : value * pow(10, exponent);
	*ret = is_negative ? -value : value;
	return isfinite(value);
}

double time_unit(struct piece unit)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 }, { "min", 60e9 } };

	for (size_t i = 0; i < N_ELEMENTS(units); i++)
		if (piece_is(unit, units[i].name))
			return units[i].ns;
	return 0;
}

bool whole_number(double value, int64_t *ret)
{
	if (!(fabs(value) < 9.2e18))
		return false;
	*ret = (int64_t)llround(value);
	return true;
}

bool piece_time(struct piece piece, int64_t *ret_ns)
{
	struct piece number = piece;
	double value, unit;

	while (number.n > 0 && !is_digit(number.at[number.n - 1]) && number.at[number.n - 1] != '.')
		number.n--;
	unit = time_unit((struct piece){ number.at + number.n, piece.n - number.n });
	return unit > 0 && piece_decimal(number, &value) && whole_number(value * unit, ret_ns);
}
