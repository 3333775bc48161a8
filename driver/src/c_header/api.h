/* How functions that people call are declared: for the file that includes this alone; or, with TILEC_DEFINE in one file and TILEC_DECLARE_ONLY in
   all others, for the whole program. The PTX then stands in that one file. */
#undef TILEC_API
#if defined(TILEC_DEFINE) && defined(TILEC_DECLARE_ONLY)
#error "TILEC_DEFINE is for one file of a program, TILEC_DECLARE_ONLY for the others"
#elif !defined(TILEC_DEFINE) && !defined(TILEC_DECLARE_ONLY)
#define TILEC_API static inline
#elif defined(__cplusplus)
#define TILEC_API extern "C"
#else
#define TILEC_API extern
#endif
