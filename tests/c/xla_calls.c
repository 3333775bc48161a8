/* What XLA does when it calls a handler on CUDA, with the structures of jaxlib's own header and a stream and a device that are
   numbers:

       gcc -shared -fPIC -O2 -I$(python3 -c 'import jax; print(jax.ffi.include_dir())') -o xla_calls.so tests/c/xla_calls.c */
#include <stdio.h>
#include <string.h>

#include "xla/ffi/api/c_api.h"

enum { MOST = 8 };

/* The last error, "CODE: TEXT". */
static char said[1 << 14];
static void *stream;
static int32_t device;

static XLA_FFI_Error *error_create(XLA_FFI_Error_Create_Args *args)
{
    snprintf(said, sizeof said, "%d: %s", (int)args->errc, args->message);
    return (XLA_FFI_Error *)said;
}

/* Errors that functions returned, and that nobody has ended. */
static int alive;

static XLA_FFI_Error *refuse(const char *why)
{
    alive++;
    return (XLA_FFI_Error *)why;
}

static void error_message(XLA_FFI_Error_GetMessage_Args *args)
{
    args->message = (const char *)args->error;
}

static void error_destroy(XLA_FFI_Error_Destroy_Args *args)
{
    alive--;
    args->error = NULL;
}

static XLA_FFI_Error *stream_get(XLA_FFI_Stream_Get_Args *args)
{
    if (args->struct_size < XLA_FFI_Stream_Get_Args_STRUCT_SIZE || args->ctx != (XLA_FFI_ExecutionContext *)&stream || stream == NULL)
        return refuse("no such stream");
    args->stream = stream;
    return NULL;
}

static XLA_FFI_Error *ordinal_get(XLA_FFI_DeviceOrdinal_Get_Args *args)
{
    if (args->struct_size < XLA_FFI_DeviceOrdinal_Get_Args_STRUCT_SIZE || args->ctx != (XLA_FFI_ExecutionContext *)&stream || device < 0)
        return refuse("no such device");
    args->device_ordinal = device;
    return NULL;
}

int errors_alive(void)
{
    return alive;
}

/* What a handler says of itself: version and traits. */
int describe(XLA_FFI_Handler *handler, int *major, int *minor)
{
    XLA_FFI_Metadata metadata = { .struct_size = XLA_FFI_Metadata_STRUCT_SIZE };
    XLA_FFI_Metadata_Extension extension = { .metadata = &metadata };
    XLA_FFI_CallFrame frame = { .struct_size = XLA_FFI_CallFrame_STRUCT_SIZE, .extension_start = &extension.extension_base };
    metadata.api_version.struct_size = XLA_FFI_Api_Version_STRUCT_SIZE;
    extension.extension_base.struct_size = sizeof extension;
    extension.extension_base.type = XLA_FFI_Extension_Metadata;
    if (handler(&frame) != NULL)
        return -1;
    *major = metadata.api_version.major_version;
    *minor = metadata.api_version.minor_version;
    return (int)metadata.traits;
}

/* Calls a handler at a stage with vectors of f32: operands first, then results. Attributes are texts, but for those without one, which are
   numbers. No stream and negative devices are errors. Returns the error, or "". `api_size` is the size that the table of functions says it has; 0 is its own. */
const char *call(XLA_FFI_Handler *handler, int stage, void *on, int at, int operands, int results, void **data, int64_t *lengths,
                 int attributes, const char **names, const char **texts, double *numbers, size_t api_size)
{
    XLA_FFI_Api api = { .struct_size = api_size != 0 ? api_size : XLA_FFI_Api_STRUCT_SIZE };
    XLA_FFI_Buffer buffers[MOST];
    XLA_FFI_ByteSpan spans[MOST], values[MOST], *span[MOST];
    XLA_FFI_Scalar scalars[MOST];
    XLA_FFI_AttrType kinds[MOST];
    XLA_FFI_ArgType arg_types[MOST];
    XLA_FFI_RetType ret_types[MOST];
    void *args[MOST], *rets[MOST], *attrs[MOST];
    if (operands + results > MOST || attributes > MOST)
        return "too many";
    api.api_version.major_version = XLA_FFI_API_MAJOR;
    api.api_version.minor_version = XLA_FFI_API_MINOR;
    api.XLA_FFI_Error_Create = error_create;
    api.XLA_FFI_Error_GetMessage = error_message;
    api.XLA_FFI_Error_Destroy = error_destroy;
    api.XLA_FFI_Stream_Get = stream_get;
    api.XLA_FFI_DeviceOrdinal_Get = ordinal_get;
    for (int i = 0; i < operands + results; i++) {
        buffers[i] = (XLA_FFI_Buffer){ .struct_size = XLA_FFI_Buffer_STRUCT_SIZE, .dtype = XLA_FFI_DataType_F32, .data = data[i], .rank = 1, .dims = &lengths[i] };
        arg_types[i] = XLA_FFI_ArgType_BUFFER;
        ret_types[i] = XLA_FFI_RetType_BUFFER;
        *(i < operands ? &args[i] : &rets[i - operands]) = &buffers[i];
    }
    for (int i = 0; i < attributes; i++) {
        spans[i] = (XLA_FFI_ByteSpan){ names[i], strlen(names[i]) };
        span[i] = &spans[i];
        kinds[i] = texts[i] != NULL ? XLA_FFI_AttrType_STRING : XLA_FFI_AttrType_SCALAR;
        scalars[i] = (XLA_FFI_Scalar){ XLA_FFI_DataType_F64, &numbers[i] };
        if (texts[i] != NULL)
            values[i] = (XLA_FFI_ByteSpan){ texts[i], strlen(texts[i]) };
        attrs[i] = texts[i] != NULL ? (void *)&values[i] : (void *)&scalars[i];
    }
    XLA_FFI_CallFrame frame = {
        .struct_size = XLA_FFI_CallFrame_STRUCT_SIZE, .api = &api, .ctx = (XLA_FFI_ExecutionContext *)&stream, .stage = (XLA_FFI_ExecutionStage)stage,
        .args = { XLA_FFI_Args_STRUCT_SIZE, NULL, operands, arg_types, args },
        .rets = { XLA_FFI_Rets_STRUCT_SIZE, NULL, results, ret_types, rets },
        .attrs = { XLA_FFI_Attrs_STRUCT_SIZE, NULL, attributes, kinds, span, attrs },
    };
    stream = on;
    device = at;
    said[0] = 0;
    XLA_FFI_Error *error = handler(&frame);
    return error == NULL ? "" : said[0] != 0 ? said : "refused by a function";
}
