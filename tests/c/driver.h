/* What a test program tells the driver that writes down its calls. */
#ifndef TEST_DRIVER_H
#define TEST_DRIVER_H 1
#include "cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An entry of the PTX for a device, and the bytes of its parameters, a zero behind them. */
typedef struct test_entry {
    int cc;
    const char *name;
    const int *sizes;
} test_entry;

/* All of them; the last one has no name. */
extern const test_entry test_entries[];

/* The device's compute capability. */
extern int test_cc;

#ifdef __cplusplus
}
#endif
#endif
