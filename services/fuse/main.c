/* SPDX-License-Identifier: Apache-2.0
 *
 * holdfast-fuse: mounts a Holdfast file system. `holdfast mount` is this program.
 */
#include <unistd.h>

#include "process.h"

int main(int argc, char **argv)
{
    return fuse_process(argc, argv, environ);
}
