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
