/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A program that contains .NET's runtime, as if published as a single file, has this function. */
void MetaDataGetDispenser(void);

void MetaDataGetDispenser(void)
{
}
