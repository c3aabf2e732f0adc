/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices that fail: errors come out as errors and are counted; no wrong byte is ever answered.
 */
#include "support_svc.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/err.h"
#include "holdfast/segment.h"

static struct bed b;

static void setup(void)
{
    bed_make(&b);
}

static void teardown(void)
{
    bed_remove(&b);
}

TestSuite(faults, .init = setup, .fini = teardown, .timeout = 60);

Test(faults, write_errors)
{
    uint8_t data[70000], got[70000];

    bed_fill(data, sizeof(data), 1);
    bed_start(&b, "error(op=write,after=2,times=1,status=EIO)+mem");
    cr_assert_eq(bed_write(&b, 1, 0, data, sizeof(data), true), 0); /* data, header */
    cr_assert_eq(bed_write(&b, 1, 0, data + 1, 50, true), HF_E_IO);
    cr_assert_eq(bed_read(&b, 1, 0, got, sizeof(got)), 0);
    cr_assert_eq(memcmp(got, data, sizeof(data)), 0, "the old content stays");
    cr_assert_eq(bed_counter(&b, "holdfast_segment_device_errors_total"), 1);
    bed_stop(&b);
}

Test(faults, full_device)
{
    uint8_t *data = malloc(1u << 20), *got = malloc(1u << 20);

    cr_assert(data && got);
    bed_fill(data, 1u << 20, 1);
    bed_start(&b, "mem(capacity=1114112)"); /* headers and 16 blocks */
    cr_assert_eq(bed_write(&b, 1, 0, data, 512 << 10, true), 0);
    cr_assert_eq(bed_write(&b, 1, 0, data + 5, (1u << 20) - 5, true), HF_E_NOSPC);
    cr_assert_eq(bed_read(&b, 1, 0, got, 1u << 20), 0);
    cr_assert_eq(b.len, 512u << 10);
    cr_assert_eq(memcmp(got, data, 512 << 10), 0);
    cr_assert_eq(bed_trunc(&b, 1, 2, 0), 0, "cutting makes room");
    bed_stop(&b);
    free(data);
    free(got);
}

Test(faults, sync_error_is_final)
{
    uint8_t data[1000], got[1000];
    uint64_t ino = 1, freed;

    bed_fill(data, sizeof(data), 1);
    bed_start(&b, "error(op=sync,times=1,status=EIO)+mem");
    cr_assert_eq(bed_write(&b, 1, 0, data, sizeof(data), true), HF_E_IO);
    cr_assert_eq(bed_write(&b, 1, 0, data, sizeof(data), true), HF_E_IO);
    cr_assert_eq(bed_read(&b, 1, 0, got, sizeof(got)), HF_E_IO);
    cr_assert_eq(bed_write(&b, 2, 0, data, sizeof(data), true), 0, "another chunk");
    cr_assert_eq(bed_delete(&b, &ino, 1, &freed), 0);
    cr_assert_eq(bed_write(&b, 1, 0, data, sizeof(data), true), HF_E_FENCED,
                 "a deleted chunk is not written again");
    cr_assert_eq(bed_trunc(&b, 1, 2, 0), HF_E_FENCED);
    bed_stop(&b);
}

/* Every third read comes back with a bit flipped. */
Test(faults, flipped_bits_never_get_out)
{
    uint8_t *data = malloc(1u << 20), *got = malloc(1u << 20);
    unsigned good = 0, bad = 0;

    cr_assert(data && got);
    bed_fill(data, 1u << 20, 9);
    bed_start(&b, "error(flip=1,every=3)+mem");
    cr_assert_eq(bed_write(&b, 1, 0, data, 1u << 20, true), 0);
    for (unsigned i = 0; i < 120; i++) {
        uint32_t offset = i * 7919 % 900000, len = 1 + i * 104729 % 100000;
        int rc = bed_read(&b, 1, offset, got, len);

        cr_assert(rc == 0 || rc == HF_E_CORRUPT, "%d", rc);
        if (rc == 0) {
            cr_assert_eq(memcmp(got, data + offset, len), 0);
            good++;
        } else {
            bad++;
        }
    }
    cr_assert(good > 10 && bad > 10, "%u good, %u bad", good, bad);
    cr_assert_eq(bed_counter(&b, "holdfast_segment_checksum_errors_total"), bad);
    bed_stop(&b);
    free(data);
    free(got);
}

Test(faults, read_errors_and_delays)
{
    uint8_t data[1000], got[1000];

    bed_fill(data, sizeof(data), 1);
    bed_start(&b, "error(op=read,after=1,times=1,status=EIO)+delay(us=300)+mem");
    cr_assert_eq(bed_write(&b, 1, 0, data, sizeof(data), true), 0);
    cr_assert_eq(bed_read(&b, 1, 0, got, sizeof(got)), HF_E_IO);
    cr_assert_eq(bed_read(&b, 1, 0, got, sizeof(got)), 0);
    cr_assert_eq(memcmp(got, data, sizeof(data)), 0);
    bed_stop(&b);
}

Test(faults, start_says_what_is_wrong)
{
    struct hf_segsvc_segment two[] = {{.id = 1, .spec = "mem"}, {.id = 1, .spec = "mem"}};
    const char *listen[] = {"inproc://seg-bad"}, *remote[] = {"tcp://10.1.2.3:9"};
    struct hf_segsvc_opts o = {.env = b.env,
                               .dir = b.dir,
                               .plugin_dir = getenv("HF_PLUGIN_DIR"),
                               .segments = two,
                               .nsegments = 2,
                               .listen = listen,
                               .nlisten = 1};
    struct hf_segsvc *s = NULL;
    char err[512];

    cr_assert_eq(hf_segsvc_new(&o, &s, err, sizeof(err)), HF_E_INVAL);
    cr_assert_not_null(strstr(err, "twice"));
    two[1] = (struct hf_segsvc_segment){.id = 2, .spec = "nosuch"};
    cr_assert_eq(hf_segsvc_new(&o, &s, err, sizeof(err)), HF_E_NOENT);
    cr_assert_not_null(strstr(err, "segment 2"));
    o.nsegments = 0;
    cr_assert_eq(hf_segsvc_new(&o, &s, err, sizeof(err)), HF_E_INVAL);
    o.nsegments = 1;
    o.listen = remote;
    cr_assert_eq(hf_segsvc_new(&o, &s, err, sizeof(err)), HF_E_PERM);
    cr_assert_not_null(strstr(err, remote[0]));
    cr_assert_null(s);
}
