package program

import "runtime/debug"

// Version is the version of the running program: what the linker stamped into it, or
// else what the go command knew when it built it. That is the tag or pseudo-version of
// the commit, with +dirty for changes that are in none, and "(devel)" without one.
func Version(stamped string) string {
	built, _ := debug.ReadBuildInfo()
	return versionOf(stamped, built)
}

// versionOf is Version by what was built; nil is a binary that does not say.
func versionOf(stamped string, built *debug.BuildInfo) string {
	switch {
	case stamped != "":
		return stamped
	case built != nil && built.Main.Version != "":
		return built.Main.Version
	default:
		return "unknown"
	}
}
