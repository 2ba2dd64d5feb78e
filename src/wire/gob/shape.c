/* Shapes that everybody needs, and the limits for those who have none of their own. */
#include "wire/gob/gob.h"

const struct gob_limits gob_default_limits = {
	.message = GOB_MESSAGE_MAX,
	.types = GOB_TYPES_MAX,
	.type_bytes = GOB_TYPE_BYTES_MAX,
	.fields = GOB_FIELDS_MAX,
	.depth = GOB_DEPTH_MAX,
	.values = GOB_VALUES_MAX,
};

const struct gob_shape gob_shape_bool = {.kind = GOB_BOOL, .name = "bool"};
const struct gob_shape gob_shape_int = {.kind = GOB_INT, .name = "int"};
const struct gob_shape gob_shape_int64 = {.kind = GOB_INT, .name = "int64"};
const struct gob_shape gob_shape_uint = {.kind = GOB_UINT, .name = "uint"};
const struct gob_shape gob_shape_uint64 = {.kind = GOB_UINT, .name = "uint64"};
const struct gob_shape gob_shape_float64 = {.kind = GOB_FLOAT, .name = "float64"};
const struct gob_shape gob_shape_string = {.kind = GOB_STRING, .name = "string"};
const struct gob_shape gob_shape_bytes = {.kind = GOB_BYTES, .name = "[]uint8"};
const struct gob_shape gob_shape_interface = {.kind = GOB_INTERFACE, .name = "interface {}"};

/* Go defines these two without a name when an interface holds them. */
const struct gob_shape gob_shape_any_map = {
	.kind = GOB_MAP,
	.name = "",
	.go = "map[string]interface {}",
	.key = &gob_shape_string,
	.elem = &gob_shape_interface,
};

const struct gob_shape gob_shape_any_slice = {
	.kind = GOB_SLICE,
	.name = "",
	.go = "[]interface {}",
	.elem = &gob_shape_interface,
};

const struct gob_shape gob_shape_empty_struct = {
	.kind = GOB_STRUCT,
	.name = "",
	.go = "struct {}",
};
