package webhookcert

import (
	"bytes"
	"slices"

	"github.com/clusterextensions/operator-controller/internal/selfissued"
)

// action is the next thing to do about one certificate.
type action string

const (
	// rest: there is nothing to do.
	rest action = "rest"
	// stage a new certificate: it is made, and its authority becomes one of
	// those to trust.
	stage action = "stage"
	// inject the authorities into all who call.
	inject action = "inject"
	// publish the staged certificate to servers.
	publish action = "publish"
)

// actionOf puts what is decided about a certificate into an order in which
// nobody serves what somebody does not trust yet.
func actionOf(decision selfissued.Decision, found selfissued.Material, names []string, callers []caller) action {
	isReplaced := decision.Action == selfissued.Replace
	isStaged := found.Next != nil && selfissued.Covers(found.Next.Leaf, names)
	switch {
	case isReplaced && !isStaged:
		return stage
	case !allTrust(callers, found.Bundle()):
		return inject
	case isReplaced, decision.Action == selfissued.Promote:
		return publish
	case decision.Action == selfissued.Stage:
		return stage
	default:
		return rest
	}
}

func allTrust(callers []caller, authorities []byte) bool {
	return !slices.ContainsFunc(callers, func(c caller) bool { return !c.trusts(authorities) })
}

func (c caller) trusts(authorities []byte) bool {
	return !slices.ContainsFunc(c.configs, func(config clientConfig) bool { return !bytes.Equal(config.authorities, authorities) })
}

func trustedBy(callers []caller) []byte {
	var all []byte
	for _, caller := range callers {
		for _, config := range caller.configs {
			all = append(append(all, config.authorities...), '\n')
		}
	}
	return all
}
