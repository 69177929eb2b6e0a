/* SPDX-License-Identifier: MIT */
/*
 * student.c - Student's distribution, by the continued fraction of the incomplete beta function.
 *
 * Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.5.8 (the fraction) and 26.7.1 (the
 * distribution by it); the fraction is evaluated by Lentz's method.
 */
#include <math.h>

#include "src/compare/stats.h"

enum { MAX_STEPS = 500 };
#define TINY 1e-300

static double not_zero(double x)
{
	return fabs(x) < TINY ? TINY : x;
}

static double beta_fraction(double a, double b, double x)
{
	double c = 1, d = 1 / not_zero(1 - (a + b) * x / (a + 1)), h = d;

	for (int m = 1; m <= MAX_STEPS; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)), step;

		d = 1 / not_zero(1 + even * d);
		c = not_zero(1 + even / c);
		h *= c * d;
		d = 1 / not_zero(1 + odd * d);
		c = not_zero(1 + odd / c);
		step = c * d;
		h *= step;
		if (fabs(step - 1) < 1e-14)
			break;
	}
	return h;
}

/* Regularised incomplete beta function I_x(a, b). */
static double beta_part(double a, double b, double x)
{
	double front;

	if (x <= 0 || x >= 1)
		return x <= 0 ? 0 : 1;
	front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double student_p(double t, double freedom)
{
	if (isinf(t))
		return 0;
	if (isinf(freedom))
		return erfc(fabs(t) / M_SQRT2);
	return beta_part(freedom / 2, 0.5, freedom / (freedom + t * t));
}

double student_t(double p, double freedom)
{
	double low = 0, high = 1e6;

	for (int i = 0; i < 100; i++) {
		double middle = (low + high) / 2;

		if (student_p(middle, freedom) > p)
			low = middle;
		else
			high = middle;
	}
	return high;
}
