/* A stand-in for libnvidia-ml.so.1: it plays the machine that a state file describes.
 *
 * The file named by FAKE_NVML_STATE is read anew at each call; one fact a line, facts about a GPU
 * below its `gpu` line, facts about every GPU above the first:
 *
 *   driver VERSION
 *   cuda NUMBER                                    12040 is CUDA 12.4
 *   gpu UUID TOTAL USED PERCENT MILLIWATTS MILLIJOULES MIG NAME WITH SPACES
 *   clocks SM HIGHEST_SM MEMORY CELSIUS MILLIWATTS REASONS THERMAL_NS POWER_NS
 *   settings PERSISTENCE MEMORY_ERRORS USUAL_MILLIWATTS
 *   process compute|graphics PID|match:TEXT|top:TEXT BYTES|unknown
 *   error FUNCTION* CODE                           FUNCTION* is a pattern of the shell
 *   delay FUNCTION* MICROSECONDS
 *
 * `match:TEXT` stands for every process whose command line contains TEXT, apart from the caller
 * and those that started it; `top:TEXT` for those of them whose parent is none. Builds: -DOLD_DRIVER lacks what drivers before R450 lacked;
 * -DWIDE_ENTRIES has the process lists of drivers 535.43 to 535.86.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, INSUFFICIENT_SIZE = 7, UNKNOWN = 999 };
enum { MEMORY_CLOCK = 2, BY_HEAT = 1 };
enum { ALL = -1, MOST = 256, TEXT = 128 };

typedef unsigned long long u64;

typedef struct {
    char uuid[TEXT], name[TEXT];
    u64 total, used, millijoules;
    unsigned percent, milliwatts, mig;
    unsigned sm, highest_sm, memory_clock, celsius, draw; /* draw in milliwatts */
    unsigned persistence, usual_milliwatts;
    u64 memory_errors;
    u64 reasons, slowed_by_heat, slowed_by_power;         /* a bit mask; nanoseconds */
} Gpu;

typedef struct {
    int gpu;
    char kind[TEXT], who[TEXT], bytes[TEXT];
} Process;

typedef struct { /* an error or a delay */
    int gpu;
    char what[TEXT], function[TEXT];
    unsigned value;
} Fault;

static __thread struct { /* what the file said at this call */
    char driver[TEXT];
    int cuda, gpus, processes, faults;
    Gpu gpu[MOST];
    Process process[MOST];
    Fault fault[MOST];
} state;

/* Version 1 of the lists has the first two fields, 2 and 3 the next two, wide entries all. */
typedef struct {
    unsigned pid;
    u64 memory;
    unsigned gpu_instance, compute_instance;
    u64 protected_memory;
} Entry;

typedef struct {
    u64 total, free, used;
} Memory;

typedef struct {
    u64 reference, nanoseconds;
} Violation;

static void parse(const char *line) {
    Gpu *gpu = &state.gpu[state.gpus], *last = &state.gpu[state.gpus ? state.gpus - 1 : 0];
    Process *process = &state.process[state.processes];
    Fault *fault = &state.fault[state.faults];

    sscanf(line, "driver %127s", state.driver);
    sscanf(line, "cuda %d", &state.cuda);
    if (sscanf(line, "gpu %127s %llu %llu %u %u %llu %u %127[^\n]", gpu->uuid, &gpu->total,
               &gpu->used, &gpu->percent, &gpu->milliwatts, &gpu->millijoules, &gpu->mig,
               gpu->name) == 8)
        state.gpus++;
    sscanf(line, "clocks %u %u %u %u %u %llu %llu %llu", &last->sm, &last->highest_sm,
           &last->memory_clock, &last->celsius, &last->draw, &last->reasons,
           &last->slowed_by_heat, &last->slowed_by_power);
    sscanf(line, "settings %u %llu %u", &last->persistence, &last->memory_errors,
           &last->usual_milliwatts);
    process->gpu = fault->gpu = state.gpus - 1; /* ALL above the first GPU */
    if (sscanf(line, "process %127s %127s %127s", process->kind, process->who, process->bytes) == 3)
        state.processes++;
    if (sscanf(line, "%127s %127s %u", fault->what, fault->function, &fault->value) == 3 &&
        (!strcmp(fault->what, "error") || !strcmp(fault->what, "delay")))
        state.faults++;
}

/* Read the state and play what it holds for this call: a delay, an error. */
static int enter(const char *function, int gpu) {
    char line[1024];
    const char *path = getenv("FAKE_NVML_STATE");
    FILE *file = path ? fopen(path, "r") : NULL;
    int code = SUCCESS;

    if (!file) return UNKNOWN;
    state.gpus = state.processes = state.faults = 0;
    while (fgets(line, sizeof line, file)) parse(line);
    fclose(file);
    for (Fault *fault = state.fault; fault < state.fault + state.faults; fault++) {
        if (fault->gpu != ALL && fault->gpu != gpu) continue;
        if (fnmatch(fault->function, function, 0)) continue;
        if (fault->what[0] == 'd') usleep(fault->value);
        else code = fault->value;
    }
    return code ? code : gpu >= state.gpus ? INVALID_ARGUMENT : SUCCESS;
}

/* The first lines of every function: about a GPU by number or ALL, or about `gpu` by handle. */
#define ENTER(index)                    \
    int code = enter(__func__, index);  \
    if (code) return code
#define ENTER_GPU(device)  \
    ENTER(number(device)); \
    Gpu *gpu = &state.gpu[number(device)]

/* A handle is the index plus one, so that it is never NULL. */
static int number(void *device) { return (int)(intptr_t)device - 1; }

static int parent(int pid) {
    char path[64], text[1024] = "", *end;
    int found = 0;

    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    fread(text, 1, sizeof text - 1, file);
    fclose(file);
    end = strrchr(text, ')'); /* the name before it may hold anything */
    if (end) sscanf(end, ") %*c %d", &found);
    return found;
}

static int is_ancestor(int pid) {
    for (int ours = getpid(); ours > 0; ours = parent(ours))
        if (ours == pid) return 1;
    return 0;
}

static int runs(int pid, const char *text) {
    char path[64], command[4096];

    snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    size_t length = fread(command, 1, sizeof command, file);
    fclose(file);
    return memmem(command, length, text, strlen(text)) && !is_ancestor(pid);
}

static int pids_that_run(const char *text, int *pids) {
    struct dirent *entry;
    int count = 0;
    DIR *proc = opendir("/proc");

    while (proc && count < MOST && (entry = readdir(proc)))
        if (atoi(entry->d_name) && runs(atoi(entry->d_name), text))
            pids[count++] = atoi(entry->d_name);
    if (proc) closedir(proc);
    return count;
}

/* Keep those whose parent is not among them. */
static int drop_children(int *pids, int count) {
    int all[MOST], kept = 0;

    memcpy(all, pids, sizeof all);
    for (int i = 0; i < count; i++) {
        int above = parent(all[i]), is_child = 0;
        for (int j = 0; j < count; j++) is_child |= all[j] == above;
        if (!is_child) pids[kept++] = all[i];
    }
    return kept;
}

/* Find the processes of a GPU, `match:` and `top:` resolved; returns how many there are. */
static unsigned entries(int gpu, const char *kind, Entry *found) {
    unsigned count = 0;

    for (const Process *it = state.process; it < state.process + state.processes; it++) {
        if (it->gpu != gpu || strcmp(it->kind, kind)) continue;
        u64 memory = strcmp(it->bytes, "unknown") ? strtoull(it->bytes, NULL, 10) : ULLONG_MAX;
        int pids[MOST] = {atoi(it->who)}, matches = 1;
        if (!strncmp(it->who, "match:", 6)) matches = pids_that_run(it->who + 6, pids);
        if (!strncmp(it->who, "top:", 4))
            matches = drop_children(pids, pids_that_run(it->who + 4, pids));
        for (int i = 0; i < matches && count < MOST; i++)
            found[count++] = (Entry){pids[i], memory, UINT_MAX, UINT_MAX, 0};
    }
    return count;
}

static int list(int gpu, const char *kind, unsigned *room, char *out, size_t size) {
    Entry found[MOST];
    unsigned asked = *room;

    *room = entries(gpu, kind, found);
    if (*room > asked) return INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < *room; i++) memcpy(out + i * size, &found[i], size);
    return SUCCESS;
}

#define LIST(function, kind, size)                           \
    int function(void *device, unsigned *count, char *out) { \
        ENTER(number(device));                               \
        return list(number(device), kind, count, out, size); \
    }

LIST(nvmlDeviceGetComputeRunningProcesses, "compute", 16)
LIST(nvmlDeviceGetGraphicsRunningProcesses, "graphics", 16)

#ifdef WIDE_ENTRIES
enum { V3 = 32 };
#else
enum { V3 = 24 };
#endif

#ifndef OLD_DRIVER
LIST(nvmlDeviceGetComputeRunningProcesses_v2, "compute", 24)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, "graphics", 24)
LIST(nvmlDeviceGetComputeRunningProcesses_v3, "compute", V3)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, "graphics", V3)

int nvmlDeviceGetTotalEnergyConsumption(void *device, u64 *millijoules) {
    ENTER_GPU(device);
    *millijoules = gpu->millijoules;
    return SUCCESS;
}

int nvmlDeviceGetCurrentClocksEventReasons(void *device, u64 *reasons) {
    ENTER_GPU(device);
    *reasons = gpu->reasons;
    return SUCCESS;
}

int nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending) {
    ENTER_GPU(device);
    *current = *pending = gpu->mig;
    return SUCCESS;
}
#endif

const char *nvmlErrorString(int code) {
    (void)code;
    return "Something else";
}

int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    ENTER(ALL);
    return SUCCESS;
}

int nvmlShutdown(void) {
    ENTER(ALL);
    return SUCCESS;
}

int nvmlSystemGetDriverVersion(char *version, unsigned room) {
    ENTER(ALL);
    snprintf(version, room, "%s", state.driver);
    return SUCCESS;
}

int nvmlSystemGetCudaDriverVersion(int *version) {
    ENTER(ALL);
    *version = state.cuda;
    return SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned *count) {
    ENTER(ALL);
    *count = state.gpus;
    return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
    ENTER(index);
    *device = (void *)((intptr_t)index + 1);
    return SUCCESS;
}

int nvmlDeviceGetUUID(void *device, char *uuid, unsigned room) {
    ENTER_GPU(device);
    snprintf(uuid, room, "%s", gpu->uuid);
    return SUCCESS;
}

int nvmlDeviceGetName(void *device, char *name, unsigned room) {
    ENTER_GPU(device);
    snprintf(name, room, "%s", gpu->name);
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo(void *device, Memory *memory) {
    ENTER_GPU(device);
    *memory = (Memory){gpu->total, gpu->total - gpu->used, gpu->used};
    return SUCCESS;
}

int nvmlDeviceGetUtilizationRates(void *device, unsigned *rates) {
    ENTER_GPU(device);
    rates[0] = gpu->percent;
    rates[1] = 0; /* of the memory bus */
    return SUCCESS;
}

int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *milliwatts) {
    ENTER_GPU(device);
    *milliwatts = gpu->milliwatts;
    return SUCCESS;
}

int nvmlDeviceGetClockInfo(void *device, unsigned type, unsigned *megahertz) {
    ENTER_GPU(device);
    *megahertz = type == MEMORY_CLOCK ? gpu->memory_clock : gpu->sm;
    return SUCCESS;
}

int nvmlDeviceGetMaxClockInfo(void *device, unsigned type, unsigned *megahertz) {
    ENTER_GPU(device);
    *megahertz = type == MEMORY_CLOCK ? gpu->memory_clock : gpu->highest_sm;
    return SUCCESS;
}

int nvmlDeviceGetTemperature(void *device, unsigned sensor, unsigned *celsius) {
    (void)sensor;
    ENTER_GPU(device);
    *celsius = gpu->celsius;
    return SUCCESS;
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts) {
    ENTER_GPU(device);
    *milliwatts = gpu->draw;
    return SUCCESS;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, u64 *reasons) {
    ENTER_GPU(device);
    *reasons = gpu->reasons;
    return SUCCESS;
}

int nvmlDeviceGetViolationStatus(void *device, unsigned policy, Violation *violation) {
    ENTER_GPU(device);
    *violation = (Violation){0, policy == BY_HEAT ? gpu->slowed_by_heat : gpu->slowed_by_power};
    return SUCCESS;
}

int nvmlDeviceGetPersistenceMode(void *device, unsigned *on) {
    ENTER_GPU(device);
    *on = gpu->persistence;
    return SUCCESS;
}

int nvmlDeviceGetTotalEccErrors(void *device, unsigned kind, unsigned since, u64 *errors) {
    (void)kind, (void)since;
    ENTER_GPU(device);
    *errors = gpu->memory_errors;
    return SUCCESS;
}

int nvmlDeviceGetPowerManagementDefaultLimit(void *device, unsigned *milliwatts) {
    ENTER_GPU(device);
    *milliwatts = gpu->usual_milliwatts;
    return SUCCESS;
}
