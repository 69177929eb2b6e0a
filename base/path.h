/* path.h - parts of a path. */
#ifndef PROBING_BASE_PATH_H
#define PROBING_BASE_PATH_H

/* What stands behind the last slash; all of it where nothing stands there. Borrowed. */
const char *path_base_name(const char *path);

#endif
