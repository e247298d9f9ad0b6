package bundle

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
)

var errVersionTooLong = fmt.Errorf("longer than %d bytes", maxVersion)

// Version is the version of a bundle together with its release, the order in
// which bundles of one package follow each other.
//
// A registry+v1 catalog states the release as SemVer build metadata: in
// "1.0.0+2" the version is 1.0.0 and the release 2. Build metadata that is no
// valid release ("1.0.0+001") stays build metadata and orders nothing.
type Version struct {
	semver.Version

	// Release is nil when the bundle states none.
	Release Release
}

// Release is the dot-separated release of a bundle, with the grammar and the
// order of a SemVer pre-release.
type Release []semver.PRVersion

// maxVersion bounds the bytes of a version: each two of them may become an
// identifier of forty. Published versions have twenty.
const maxVersion = 256

// ParseVersion reads a strict SemVer 2 version ("1.2.3-rc.1+4": three numbers,
// no "v", no leading zeros) of at most 256 bytes, and splits the release off its
// build metadata.
func ParseVersion(text string) (Version, error) {
	if len(text) > maxVersion {
		const shown = 32
		return Version{}, fmt.Errorf("parsing version %.*q...: %w", shown, text, errVersionTooLong)
	}
	parsed, err := semver.Parse(text)
	if err != nil {
		return Version{}, fmt.Errorf("parsing version %q: %w", text, err)
	}
	version := Version{Version: parsed}
	if release, ok := parseRelease(parsed.Build); ok {
		version.Build = nil
		version.Release = release
	}
	return version, nil
}

func parseRelease(segments []string) (Release, bool) {
	if len(segments) == 0 {
		return nil, false
	}
	release := make(Release, 0, len(segments))
	for _, segment := range segments {
		identifier, err := semver.NewPRVersion(segment)
		if err != nil {
			return nil, false
		}
		release = append(release, identifier)
	}
	return release, true
}

// Compare orders by SemVer precedence, then by release; no release comes
// before any release.
func (v Version) Compare(other Version) int {
	if order := v.Version.Compare(other.Version); order != 0 {
		return order
	}
	return v.Release.Compare(other.Release)
}

// CompareVersions compares versions as texts. What is no version comes before all that are.
func CompareVersions(a, b string) int {
	one, errOne := ParseVersion(a)
	other, errOther := ParseVersion(b)
	switch {
	case errOne != nil && errOther != nil:
		return cmp.Compare(a, b)
	case errOne != nil:
		return -1
	case errOther != nil:
		return 1
	}
	return one.Compare(other)
}

// String is the form that catalogs and release records use: the release as
// build metadata.
func (v Version) String() string {
	if len(v.Release) == 0 {
		return v.Version.String()
	}
	return v.Version.String() + "+" + v.Release.String()
}

// Compare orders releases as SemVer orders pre-releases, except that the empty
// release is the lowest.
func (r Release) Compare(other Release) int {
	switch {
	case len(r) == 0 && len(other) == 0:
		return 0
	case len(r) == 0:
		return -1
	case len(other) == 0:
		return 1
	}
	return semver.Version{Pre: r}.Compare(semver.Version{Pre: other})
}

// String joins the identifiers by dots; it is empty for no release.
func (r Release) String() string {
	identifiers := make([]string, len(r))
	for i, identifier := range r {
		identifiers[i] = identifier.String()
	}
	return strings.Join(identifiers, ".")
}
