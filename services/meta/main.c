/* SPDX-License-Identifier: Apache-2.0
 *
 * holdfast-meta. Exit status: 0 stopped cleanly, 1 could not start, 2 bad configuration.
 */
#include <stdio.h>

#include "process.h"

extern char **environ;

int main(int argc, char **argv)
{
    struct hf_buf out = {0};
    int status = meta_process(argc, argv, environ, &out);

    if (out.len > 0)
        (void)fwrite(out.data, 1, out.len, status ? stderr : stdout);
    hf_buf_fini(&out);
    return status;
}
