/* A driver's library with few of NVML's functions and one device, as an old one could be. Whoever calls another function
   of NVML ends the process. Each event set is told one event: Xid 79. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct { unsigned long long total, free, used; } memory;
typedef struct { void *device; unsigned long long type, data; unsigned gpu, compute; } event;

static int the_device, the_set, told, registered;

int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int ret) { return ret == 999 ? "Unknown Error" : "Some Error"; }
int nvmlSystemGetDriverVersion(char *out, unsigned n) { snprintf(out, n, "450.1"); return 0; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 1; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **out) { *out = &the_device; return i ? 2 : 0; }
int nvmlDeviceGetHandleByUUID(const char *uuid, void **out) { *out = &the_device; return strcmp(uuid, "GPU-old") ? 6 : 0; }
int nvmlDeviceGetUUID(void *d, char *out, unsigned n) { snprintf(out, n, "GPU-old"); return d != &the_device; }
int nvmlDeviceGetName(void *d, char *out, unsigned n) { snprintf(out, n, "Old GPU"); return d != &the_device; }
int nvmlDeviceGetMemoryInfo(void *d, memory *out) { *out = (memory){100, 60, 40}; return d != &the_device; }
int nvmlDeviceGetPowerUsage(void *d, unsigned *out) { *out = 0; return d == &the_device ? 3 : 1; }         /* not supported */
int nvmlDeviceGetEnforcedPowerLimit(void *d, unsigned *out) { *out = 0; return d == &the_device ? 999 : 1; } /* unknown */
int nvmlEventSetCreate(void **set) { *set = &the_set; told = 0; return 0; }
int nvmlEventSetFree(void *set) { return set != &the_set; }
int nvmlDeviceGetSupportedEventTypes(void *d, unsigned long long *out) { *out = 8 | 2 | 1; return d != &the_device; }
int nvmlDeviceRegisterEvents(void *d, unsigned long long types, void *set) { registered = types == (8 | 2) && set == &the_set; return d != &the_device; }
int nvmlEventSetWait_v2(void *set, event *out, unsigned ms) {
	(void)set, (void)ms;
	usleep(1000);
	if (!registered || told) return 10; /* time-out */
	told = 1;
	*out = (event){&the_device, 8, 79, -1, -1};
	return 0;
}
