/* SPDX-License-Identifier: Apache-2.0
 *
 * holdfast-node: a whole file system in one process. Exit status: 0 stopped cleanly, 1 could not
 * start or --fsck found problems, 2 bad configuration, 70 an I/O error of log or LMDB (node.c).
 */
#include <stdio.h>

#include "holdfast/err.h"
#include "holdfast/svc_node.h"

extern char **environ;

static void print(FILE *f, const struct hf_buf *b)
{
    if (b->len > 0)
        (void)fwrite(b->data, 1, b->len, f);
    (void)fflush(f);
}

static int fsck(struct hf_node *n, struct hf_buf *out)
{
    int problems = hf_node_fsck(n, out);

    print(problems < 0 ? stderr : stdout, out);
    return problems ? 1 : 0;
}

int main(int argc, char **argv)
{
    struct hf_buf out = {0};
    struct hf_node *node;
    int status = 0;
    int rc = hf_node_new(argc, argv, environ, &node, &out);

    if (rc == HF_E_CANCELED) {
        print(stdout, &out);
    } else if (rc) {
        print(stderr, &out);
        status = rc == HF_E_CONF ? 2 : 1;
    } else if (hf_node_wants_fsck(node)) {
        status = fsck(node, &out);
        hf_node_free(node);
    } else {
        hf_node_wait(node);
        hf_node_free(node);
    }
    hf_buf_fini(&out);
    return status;
}
