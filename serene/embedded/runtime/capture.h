/* Writes a port's packets to a file for tcpdump, Wireshark and scapy. Only in a program compiled with -DTRACE. */
#ifndef SERENE_CAPTURE_H
#define SERENE_CAPTURE_H

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

struct capture {
    FILE *file;                  /* NULL: none, or it has ended */
    off_t size, whole;           /* with buffered bytes; on the disk, up to the end of a packet */
    int error;                   /* errno with which it ended, until it is read */
};

enum { CAPTURE_IN, CAPTURE_OUT };
enum { LINKTYPE_ETHERNET = 1 };

#ifdef TRACE
/* Opens a file that begins with pcap's header (nanoseconds, in this machine's byte order); `further`: appends to it. If
 * that fails, the capture has no file, and errno has the error. */
static struct capture capture_open(const char *path, int further) {
    struct capture capture = {fopen(path, further ? "ae" : "we"), 0, 0, 0};
    struct stat there = {0};
    const uint32_t head[] = {0xa1b23c4d, 2 | 4 << 16, 0, 0, MAX_FRAME, LINKTYPE_ETHERNET};
    if (!capture.file) return capture;
    if (!fstat(fileno(capture.file), &there)) capture.size = capture.whole = there.st_size;
    if (!capture.size) capture.size += (off_t)(sizeof head * fwrite(head, sizeof head, 1, capture.file));
    return capture;
}

static void capture_write(struct capture *capture, const uint8_t *data, uint32_t length) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const uint32_t head[] = {(uint32_t)now.tv_sec, (uint32_t)now.tv_nsec, length, length};
    if (ferror(capture->file)) return;
    fwrite(head, sizeof head, 1, capture->file);
    fwrite(data, 1, length, capture->file);
    capture->size += (off_t)sizeof head + length;
}

/* A full disk ends the capture, not the switch. The file ends after its last whole packet. The forwarding thread writes
 * no log, because a slow reader of the log could block it. The error is stored until it is read. */
static void capture_flush(struct capture *capture) {
    if (!fflush(capture->file) && !ferror(capture->file)) {
        capture->whole = capture->size;
        return;
    }
    int error = errno, fd = dup(fileno(capture->file));
    fclose(capture->file);
    capture->file = NULL;
    if (fd >= 0 && ftruncate(fd, capture->whole)) { /* then its last packet is truncated */ }
    if (fd >= 0) close(fd);
    capture->error = error ? error : EIO;
}
#endif

#endif
