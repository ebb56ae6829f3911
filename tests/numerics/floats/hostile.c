/* What a device's library may do to the arithmetic of the process it is loaded into. Linked with -ffast-math it also
   sets flush-to-zero when it is loaded (crtfastm.o). */
#define _GNU_SOURCE
#include <fenv.h>
#include <pthread.h>

void upward(void) { fesetround(FE_UPWARD); }
void downward(void) { fesetround(FE_DOWNWARD); }
void toward_zero(void) { fesetround(FE_TOWARDZERO); }
void traps(void) { feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW); }

static void *rounding_upward(void *call) {
  fesetround(FE_UPWARD);
  ((void (*)(void))call)();
  return NULL;
}

/* Calls back from a thread of its own, in which rounding is upward. */
void in_a_thread(void (*call)(void)) {
  pthread_t thread;
  pthread_create(&thread, NULL, rounding_upward, (void *)call);
  pthread_join(thread, NULL);
}
