package bundle

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Bounds on what templates read of a cluster.
const (
	// MaxLookupBytes is what the answer to one lookup may have, as JSON. An API server stores no
	// object that is larger by much; a list can be.
	MaxLookupBytes = 1 << 20

	// maxLocation is how long the name of a file is that a failure is told with.
	maxLocation = 256
)

// ChartLookup reads the cluster for the function lookup of templates. It gives the JSON of an
// object, or of a list if no name is asked for; nil if there is no such object. It reads
// [MaxLookupBytes] at most, and fails where there is more.
//
// Its errors go into messages for people. They have nothing of the content of objects, nor of
// what was asked for, since templates can ask for a name that they have read in a Secret.
type ChartLookup func(ctx context.Context, asked LookupRequest) ([]byte, error)

// LookupRequest is what templates ask for. All of it is text of templates.
type LookupRequest struct {
	APIVersion, Kind string

	// Namespace is empty for all namespaces, and Name for a list.
	Namespace, Name string
}

// Of is what is asked for. There can be several ways to spell it, such as "v1" and "/v1"; what is no
// version of an API comes to none.
func (r LookupRequest) Of() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
}

// IsForSecrets is true if the content of Secrets is what is asked for.
func (r LookupRequest) IsForSecrets() bool {
	return r.Of().GroupKind() == schema.GroupKind{Kind: "Secret"}
}

// Lookups says whether templates of a chart have asked for objects of the cluster.
type Lookups string

const (
	// NoLookups is for those that have not.
	NoLookups Lookups = ""

	// LookupsMade is for those that have: what was rendered depends on the cluster.
	LookupsMade Lookups = "made"

	// LookupsUnanswered is for those that may, and have, where there is no cluster to look at.
	LookupsUnanswered Lookups = "unanswered"

	// LookupsRefused is for those that may not, and have all the same: they have found nothing.
	LookupsRefused Lookups = "refused"
)

// LookupsRefusedText says what that means for whoever chooses the configuration.
const LookupsRefusedText = "templates call lookup, and find nothing without spec.config.inline.allowLookup: " +
	"what they would keep by it, such as a password, they make anew with each version or configuration"

// AllowsLookup says whether a configuration lets templates of a chart look at the cluster. It is
// false for what [ParseConfig] refuses.
func AllowsLookup(inline []byte) bool {
	value, err := decodeConfig(inline)
	if err != nil {
		return false
	}
	object, _ := value.(map[string]any)
	allowed, _ := object[keyAllowLookup].(bool)
	return allowed
}

// lookupFor is what answers templates with these options, nil if they may not ask. Where there is no
// cluster they are answered all the same, that there is nothing: so it is known that they have asked.
func lookupFor(opts Options) ChartLookup {
	switch {
	case !opts.Config.AllowLookup:
		return nil
	case opts.Lookup == nil:
		return func(context.Context, LookupRequest) ([]byte, error) { return nil, nil }
	}
	return opts.Lookup
}

// lookupsOf says whether templates have asked, and were answered.
func lookupsOf(opts Options, out ChartOutput) Lookups {
	switch {
	case out.LooksInVain:
		return LookupsRefused
	case !out.LooksUp:
		return NoLookups
	case opts.Lookup == nil:
		return LookupsUnanswered
	}
	return LookupsMade
}

// undecided is an error of a chart whose templates have looked at the cluster: they may do
// otherwise when that has changed, so that nobody is told that the chart is at fault. What such a
// chart says can be the content of Secrets that it has read; then only the place is told.
func (c *Chart) undecided(err error, out ChartOutput) error {
	if !out.ReadsSecrets {
		return fmt.Errorf("rendering a chart with what lookup has found on the cluster: %s", err.Error())
	}
	if at := c.locationIn(err); at != "" {
		return fmt.Errorf("rendering a chart with what lookup has found on the cluster has failed at %s; why is not shown, as its templates have read Secrets", at)
	}
	return errors.New("rendering a chart with what lookup has found on the cluster has failed; why is not shown, as its templates have read Secrets")
}

// lines is how the engine names a line: the name of the chart, the file, the line.
var lines = regexp.MustCompile(`[^\s/(]+/([^\s:]+):(\d{1,6})`)

// locationIn is where an error comes from, if that is a file of the chart.
func (c *Chart) locationIn(err error) string {
	for _, found := range lines.FindAllStringSubmatch(err.Error(), -1) {
		if _, isFile := c.Files[found[1]]; isFile && len(found[1]) <= maxLocation {
			return found[1] + ":" + found[2]
		}
	}
	if invalid, ok := errors.AsType[*InvalidError](err); ok {
		file := strings.TrimPrefix(invalid.Violations[0].File, ChartDir+"/")
		if _, isFile := c.Files[file]; isFile && len(file) <= maxLocation {
			return path.Clean(file)
		}
	}
	return ""
}
