/* What comes and leaves by a port, as a file for tcpdump, Wireshark and scapy: only in a program compiled with -DTRACE. */
#ifndef SERENE_CAPTURE_H
#define SERENE_CAPTURE_H

#include <stdio.h>

enum { CAPTURE_IN, CAPTURE_OUT };
enum { LINKTYPE_ETHERNET = 1 };

#ifdef TRACE
static void capture(struct runtime *runtime, uint32_t port, const uint8_t *data, uint32_t length, int direction);

/* A new file with pcap's header (nanoseconds, of this machine's byte order); NULL, and errno says why not. */
static FILE *capture_open(const char *path) {
    FILE *file = fopen(path, "we");
    const uint32_t head[] = {0xa1b23c4d, 2 | 4 << 16, 0, 0, MAX_FRAME, LINKTYPE_ETHERNET};
    if (file && fwrite(head, sizeof head, 1, file) != 1) {
        fclose(file);
        return NULL;
    }
    return file;
}

/* A full disk ends the file, not the switch. */
static void capture_write(FILE *file, const uint8_t *data, uint32_t length) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const uint32_t head[] = {(uint32_t)now.tv_sec, (uint32_t)now.tv_nsec, length, length};
    if (ferror(file)) return;
    fwrite(head, sizeof head, 1, file);
    fwrite(data, 1, length, file);
}
#endif

#endif
