/* SPDX-License-Identifier: MIT */
/* repr_array.c - arrays and tensors: their type, shape and device.
 *
 * NumPy's structures are its C interface and do not change (numpy/ndarraytypes.h,
 * numpy/arrayscalars.h, 1.7 to 2.3). PyTorch's are internal: a tensor points back to
 * its Python object, and after that pointer come the sizes, strides, offset and number of
 * elements (c10/core/TensorImpl.h, 1.9 to 2.9). They count only if the product of the sizes is that number;
 * otherwise the text is the type's name alone.
 */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "unwind/cpython/repr.h"

enum { MAX_DIMENSIONS = 64 /* limit of NumPy and PyTorch */, WORD = sizeof(uint64_t) };

void repr_put_shape(struct repr *repr, const int64_t *shape, unsigned n)
{
	repr_put(repr, "(");
	for (unsigned i = 0; i < n; i++)
		repr_printf(repr, "%s%lld", i ? ", " : "", (long long)shape[i]);
	repr_put(repr, n == 1 ? ",)" : ")");
}

/* Address of an object's own fields, after the object head. */
static uint64_t fields_of(const struct py_runtime *runtime, uint64_t object)
{
	return object + reader_field(runtime, FLOAT_VALUE);
}

/* Offsets in struct PyArrayObject, after the head. */
enum { ARRAY_N_DIMENSIONS = 8, ARRAY_DIMENSIONS = 16, ARRAY_TYPE = 40, TYPE_NUMBER = 12 };

static const char *const numpy_types[] = {
	"bool",        "int8",     "uint8",     "int16",   "uint16",  "int32",      "uint32",      "int64",
	"uint64",      "longlong", "ulonglong", "float32", "float64", "longdouble", "complex64",   "complex128",
	"clongdouble", "object",   "bytes",     "str",     "void",    "datetime64", "timedelta64", "float16",
};

static int array_type(struct py_runtime *runtime, uint64_t array, const char **ret)
{
	uint64_t type;
	uint32_t number;
	int r;

	r = object_word(runtime, fields_of(runtime, array) + ARRAY_TYPE, &type);
	if (r >= 0)
		r = page_cache_read(&runtime->page_cache, fields_of(runtime, type) + TYPE_NUMBER, &number,
				    sizeof number);
	if (r < 0)
		return r;
	*ret = number < N_ELEMENTS(numpy_types) ? numpy_types[number] : "?";
	return 0;
}

int repr_put_ndarray(struct repr *repr, uint64_t object, const struct object_type *type, const struct object_type *base,
		     unsigned depth)
{
	struct py_runtime *runtime = repr->runtime;
	int64_t shape[MAX_DIMENSIONS];
	uint64_t dimensions;
	const char *name, *dot = strrchr(type->name, '.');
	uint32_t n;
	int r;

	(void)base;
	(void)depth;
	r = page_cache_read(&runtime->page_cache, fields_of(runtime, object) + ARRAY_N_DIMENSIONS, &n, sizeof n);
	if (r >= 0)
		r = object_word(runtime, fields_of(runtime, object) + ARRAY_DIMENSIONS, &dimensions);
	if (r >= 0)
		r = n <= MAX_DIMENSIONS ? array_type(runtime, object, &name) : -EBADMSG;
	if (r >= 0 && n > 0)
		r = page_cache_read(&runtime->page_cache, dimensions, shape, n * sizeof *shape);
	if (r < 0)
		return r;
	repr_printf(repr, "%s(%s, ", dot ? dot + 1 : type->name, name);
	repr_put_shape(repr, shape, n);
	repr_put(repr, ")");
	return 0;
}

int repr_put_numpy_scalar(struct repr *repr, uint64_t object, const struct object_type *type,
			  const struct object_type *base, unsigned depth)
{
	union {
		uint64_t word;
		double as_double;
		float as_float;
		int64_t i64;
		int32_t i32;
		int16_t i16;
		int8_t i8;
		uint32_t u32;
		uint16_t u16;
		uint8_t u8;
	} value;
	const char *kind = strchr(base->name, '.') + 1;
	int r;

	(void)type;
	(void)depth;
	r = object_word(repr->runtime, fields_of(repr->runtime, object), &value.word);
	if (r < 0)
		return r;
	repr_printf(repr, "%s(", base->name);
	if (strcmp(kind, "float64") == 0)
		repr_put_double(repr, value.as_double, true);
	else if (strcmp(kind, "float32") == 0)
		repr_printf(repr, "%.8g", (double)value.as_float);
	else if (strcmp(kind, "int64") == 0 || strcmp(kind, "longlong") == 0)
		repr_printf(repr, "%lld", (long long)value.i64);
	else if (strcmp(kind, "uint64") == 0 || strcmp(kind, "ulonglong") == 0)
		repr_printf(repr, "%llu", (unsigned long long)value.word);
	else if (strcmp(kind, "int32") == 0 || strcmp(kind, "intc") == 0)
		repr_printf(repr, "%d", value.i32);
	else if (strcmp(kind, "uint32") == 0 || strcmp(kind, "uintc") == 0)
		repr_printf(repr, "%u", value.u32);
	else if (strcmp(kind, "int16") == 0)
		repr_printf(repr, "%d", value.i16);
	else if (strcmp(kind, "uint16") == 0)
		repr_printf(repr, "%u", value.u16);
	else if (strcmp(kind, "int8") == 0)
		repr_printf(repr, "%d", value.i8);
	else if (strcmp(kind, "uint8") == 0)
		repr_printf(repr, "%u", value.u8);
	else
		repr_put(repr, value.u8 ? "True" : "False");
	repr_put(repr, ")");
	return 0;
}

/* TensorImpl: number of words searched for the pointer back to Python, then offsets from that pointer. */
enum {
	IMPL_WORDS = 16,
	IMPL_N_DIMENSIONS = 1,
	IMPL_SHAPE = 2, /* up to five sizes, or a pointer to more */
	IMPL_N_INLINE = 5,
	IMPL_N_ELEMENTS = IMPL_SHAPE + 2 * IMPL_N_INLINE + 1,
	IMPL_TYPE,
	IMPL_READ,
};

static const char *const torch_types[] = {
	"uint8",           "int8",
	"int16",           "int32",
	"int64",           "float16",
	"float32",         "float64",
	"complex32",       "complex64",
	"complex128",      "bool",
	"qint8",           "quint8",
	"qint32",          "bfloat16",
	"quint4x2",        "quint2x4",
	"bits1x8",         "bits2x4",
	"bits4x2",         "bits8",
	"bits16",          "float8_e5m2",
	"float8_e4m3fn",   "float8_e5m2fnuz",
	"float8_e4m3fnuz", "uint16",
	"uint32",          "uint64",
};
static const char *const torch_devices[] = {
	"cpu",   "cuda", "mkldnn", "opengl", "opencl", "ideep", "hip",  "fpga", "maia", "xla",           "vulkan",
	"metal", "xpu",  "mps",    "meta",   "hpu",    "ve",    "lazy", "ipu",  "mtia", "privateuseone",
};

struct tensor {
	const char *type;
	unsigned device;   /* index of torch_devices */
	int device_number; /* -1: there is only one */
	unsigned n_dimensions;
	int64_t shape[MAX_DIMENSIONS];
};

static int parse_device(const uint8_t bytes[3], struct tensor *tensor)
{
	/* The has-value flag follows the value; in older releases it precedes it. */
	const uint8_t *device = bytes[2] == 1 && bytes[0] < N_ELEMENTS(torch_devices) ? bytes : bytes + 1;

	if ((device == bytes + 1 && bytes[0] != 1) || device[0] >= N_ELEMENTS(torch_devices))
		return -EBADMSG;
	tensor->device = device[0];
	tensor->device_number = (int8_t)device[1];
	return 0;
}

static int check_shape(const struct tensor *tensor, uint64_t n_elements)
{
	uint64_t product = 1;

	for (unsigned i = 0; i < tensor->n_dimensions; i++)
		if (tensor->shape[i] < 0 || __builtin_mul_overflow(product, (uint64_t)tensor->shape[i], &product))
			return -EBADMSG;
	return product == n_elements ? 0 : -EBADMSG;
}

static int parse_tensor(struct py_runtime *runtime, uint64_t address, struct tensor *tensor)
{
	uint64_t words[IMPL_READ];
	const uint8_t *type;
	int r;

	r = page_cache_read(&runtime->page_cache, address, words, sizeof words);
	if (r < 0)
		return r;
	if (words[IMPL_N_DIMENSIONS] > MAX_DIMENSIONS)
		return -EBADMSG;
	tensor->n_dimensions = (unsigned)words[IMPL_N_DIMENSIONS];
	if (tensor->n_dimensions <= IMPL_N_INLINE)
		memcpy(tensor->shape, words + IMPL_SHAPE, tensor->n_dimensions * sizeof *tensor->shape);
	else
		r = page_cache_read(&runtime->page_cache, words[IMPL_SHAPE], tensor->shape,
				    tensor->n_dimensions * sizeof *tensor->shape);
	if (r >= 0)
		r = check_shape(tensor, words[IMPL_N_ELEMENTS]);
	if (r < 0)
		return r;
	type = (const uint8_t *)&words[IMPL_TYPE];
	if (type[1] != 0 || type[0] >= N_ELEMENTS(torch_types))
		return -EBADMSG;
	tensor->type = torch_types[type[0]];
	return parse_device(type + 2, tensor);
}

/* Parse what a word of the Python object points to, if that is its tensor. */
static int tensor_at(struct py_runtime *runtime, uint64_t address, uint64_t object, struct tensor *tensor)
{
	uint64_t words[IMPL_WORDS];
	int r;

	if (address == 0 || address % WORD != 0)
		return -EBADMSG;
	r = page_cache_read(&runtime->page_cache, address, words, sizeof words);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < IMPL_WORDS; i++)
		if ((words[i] & ~(uint64_t)1) == object) /* the lowest bit is an ownership flag */
			return parse_tensor(runtime, address + i * WORD, tensor);
	return -EBADMSG;
}

int repr_put_tensor(struct repr *repr, uint64_t object, const struct object_type *type, const struct object_type *base,
		    unsigned depth)
{
	struct py_runtime *runtime = repr->runtime;
	struct tensor tensor;
	uint64_t words[2];
	int r;

	(void)base;
	(void)depth;
	repr_put(repr, type->name);
	r = page_cache_read(&runtime->page_cache, fields_of(runtime, object), words, sizeof words);
	if (r < 0)
		return 0;
	/* Either the pointer, or an ownership flag and then the pointer. */
	if (tensor_at(runtime, words[1], object, &tensor) < 0 && tensor_at(runtime, words[0], object, &tensor) < 0)
		return 0;
	repr_printf(repr, "(%s, ", tensor.type);
	repr_put_shape(repr, tensor.shape, tensor.n_dimensions);
	repr_printf(repr, ", %s", torch_devices[tensor.device]);
	if (tensor.device_number >= 0 && tensor.device != 0)
		repr_printf(repr, ":%d", tensor.device_number);
	repr_put(repr, ")");
	return 0;
}
