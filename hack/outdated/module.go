package main

import (
	"context"
	"encoding/json"
	"fmt"
	goversion "go/version"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// module is a part of what go mod edit -json prints about a go.mod.
type module struct {
	Go      string
	Require []requirement
	Replace []struct {
		Old requirement
		New requirement
	}
}

type requirement struct {
	Path     string
	Version  string
	Indirect bool
}

func readModule(ctx context.Context, folder string) (module, error) {
	text, err := golang(ctx, folder, "mod", "edit", "-json")
	if err != nil {
		return module{}, err
	}
	return parseModule(text)
}

func parseModule(text []byte) (module, error) {
	var m module
	if err := json.Unmarshal(text, &m); err != nil { //nolint:musttag // the go command names its fields so
		return module{}, fmt.Errorf("reading the output of go mod edit: %w", err)
	}
	return m, nil
}

// direct returns the requirements that the module itself uses and that are not
// replaced: a replacement fixes the version on purpose.
func (m module) direct() []requirement {
	return slices.DeleteFunc(slices.Clone(m.Require), func(r requirement) bool {
		for _, replaced := range m.Replace {
			if replaced.Old.Path == r.Path && (replaced.Old.Version == "" || replaced.Old.Version == r.Version) {
				return true
			}
		}
		return r.Indirect
	})
}

// newest returns the newest of versions, or current if none is newer. Prereleases
// count if current is one, and pseudo-versions are prereleases. Versions without a
// go.mod ("+incompatible") count if current is one.
func newest(current string, versions []string) string {
	best, err := semver.NewVersion(current)
	if err != nil {
		return current
	}
	isPrerelease, isIncompatible := best.Prerelease() != "", best.Metadata() != ""
	for _, text := range versions {
		version, err := semver.NewVersion(text)
		switch {
		case err != nil,
			version.Prerelease() != "" && !isPrerelease,
			version.Metadata() != "" && !isIncompatible:
			continue
		case version.GreaterThan(best):
			best = version
		}
	}
	return best.Original()
}

// isPseudo reports whether a version names a commit: it ends in a time of 14 digits,
// and a revision.
func isPseudo(version string) bool {
	version = strings.TrimSuffix(version, "+incompatible")
	parts := strings.Split(version, "-")
	if len(parts) < 3 {
		return false
	}
	stamp := parts[len(parts)-2]
	stamp = stamp[strings.LastIndexByte(stamp, '.')+1:]
	return len(stamp) == len("20060102150405") && strings.Trim(stamp, "0123456789") == ""
}

// needs returns a note if a module requires a newer Go than ownGo. Both are versions
// as in go.mod; needed is empty if it is unknown, which does not count as newer.
func needs(ownGo, needed string) string {
	if goversion.Compare("go"+needed, "go"+ownGo) <= 0 {
		return ""
	}
	return "needs Go " + needed
}
