package servingcert

import (
	"crypto/tls"
	"net"
	"slices"
	"time"
)

const (
	// renewBefore is how long before its end a certificate gets a successor. It
	// is far longer than any outage that one hopes to sit out.
	renewBefore = lifetime / 3
	// trustDelay is how long a successor is published before it is served.
	// Replicas learn of it in a moment, unless the API server is away.
	trustDelay = time.Hour
)

// action is what to do with the Secret.
type action int

const (
	// keep it as it is.
	keep action = iota
	// replace the certificate at once: what there is cannot be used.
	replace
	// stage a successor, which is trusted from then on.
	stage
	// promote the successor to be served.
	promote
)

// decision is what to do now, and for what reason.
type decision struct {
	action action
	reason string
	// names are what a new certificate is for, sorted.
	names []string
	// wait is the time until there may be something else to do.
	wait time.Duration
}

// decide says what has to be done at the time now so that found can be served
// under names without interruption.
func decide(found material, names []string, now time.Time) decision {
	switch {
	case found.current == nil:
		return decision{action: replace, reason: "there is no usable certificate", names: sorted(names)}
	case !covers(found.current, names):
		// Replicas that are about to be replaced may be reached by other names:
		// with all of them, the two do not undo each other's work.
		return decision{
			action: replace, reason: "the certificate is for other names",
			names: sorted(append(namesOf(found.current), names...)),
		}
	}
	if wait := found.current.Leaf.NotAfter.Add(-renewBefore).Sub(now); wait > 0 {
		return decision{action: keep, wait: wait}
	}
	next := found.next
	if next == nil || !covers(next, names) || !next.Leaf.NotAfter.After(found.current.Leaf.NotAfter) {
		return decision{action: stage, reason: "the certificate ends soon", names: sorted(names)}
	}
	if wait := next.Leaf.NotBefore.Add(backdate + trustDelay).Sub(now); wait > 0 {
		return decision{action: keep, wait: wait}
	}
	return decision{action: promote, reason: "the next certificate is trusted by now"}
}

func covers(certificate *tls.Certificate, names []string) bool {
	for _, name := range names {
		if certificate.Leaf.VerifyHostname(name) != nil {
			return false
		}
	}
	return true
}

func namesOf(certificate *tls.Certificate) []string {
	names := slices.Clone(certificate.Leaf.DNSNames)
	for _, ip := range certificate.Leaf.IPAddresses {
		names = append(names, net.IP.String(ip))
	}
	return names
}

func sorted(names []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(names)))
}
