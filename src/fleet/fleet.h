/* SPDX-License-Identifier: MIT */
/* fleet.h - recordings of many hosts in ClickHouse. */
#ifndef PROBING_FLEET_H
#define PROBING_FLEET_H

#include "src/fleet/read.h"
#include "src/fleet/tables.h"

#endif
