#include "CPeers.h"

#include <cstdlib>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

void return_unused_memory(void) {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

void take_fresh_memory(bool fresh) {
#if defined(__GLIBC__)
  mallopt(M_MMAP_THRESHOLD, fresh ? 64 << 10 : 32 << 20);
  mallopt(M_TRIM_THRESHOLD, fresh ? 64 << 10 : 1 << 30);
#else
  (void)fresh;
#endif
}
