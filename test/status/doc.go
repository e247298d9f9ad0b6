// Package status holds what the controller tells of an extension or a catalog
// against the world: every status that is ever written is captured, with the row
// that kubectl prints for it, and compared with what was on the cluster at that
// very moment.
//
// [Judge] decides and is pure. [Recorder] and [World] read; nothing here writes to
// the cluster. The statuses of its tests are kept in testdata, as kubectl prints
// them, for whoever reads statuses of this software: health checks of other tools
// are tested with them.
package status
