/* SPDX-License-Identifier: MIT */
/* made_python.c - a library of a Python package whose method tables get their functions when it is loaded. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct method {
	const char *name;
	void *function;
	int flags;
	const char *doc;
};

enum { METH_VARARGS = 1, METH_STATIC = 0x20 };

void *PyModule_Create2(void *definition, int version);
void *made_convolve(void *self, void *arguments);
void *made_add(void *self, void *arguments);
void *made_relu(void *self, void *arguments);
void *made_exp(void *self, void *arguments);
void *made_helper(void *self, void *arguments);
void *made_nothing(void);

static struct method functions[] = {
	{ "convolve", NULL, METH_STATIC | METH_VARARGS, NULL },
	{ "add", NULL, METH_STATIC | METH_VARARGS, NULL },
	{ NULL, NULL, 0, NULL },
};

/* Reached through the global offset table. */
struct method made_methods[] = {
	{ "relu", NULL, METH_VARARGS, NULL },
	{ "exp", NULL, METH_VARARGS, NULL },
	{ NULL, NULL, 0, NULL },
};

/* What looks like a method and gets no function. */
struct method made_option = { "option", NULL, METH_VARARGS, NULL };

#define METHOD(name, operation)                                                                                        \
	void *name(void *self, void *arguments)                                                                        \
	{                                                                                                              \
		return (char *)self operation(uintptr_t) arguments;                                                    \
	}
METHOD(made_convolve, +1 +)
METHOD(made_add, +2 +)
METHOD(made_relu, +3 +)
METHOD(made_exp, +4 +)
METHOD(made_helper, +5 +)

__attribute__((constructor)) static void fill(void)
{
	functions[0].function = (void *)made_convolve;
	functions[1].function = (void *)made_add;
	/* So that no compiler does this itself. */
	if (getenv("MADE_PYTHON_WITHOUT_METHODS"))
		return;
	made_methods[0].function = (void *)made_relu;
	made_methods[1].function = (void *)made_exp;
}

void *made_nothing(void)
{
	return PyModule_Create2(functions, 0);
}
