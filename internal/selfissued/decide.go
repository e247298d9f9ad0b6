package selfissued

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"slices"
	"time"
)

// TrustDelay is how long a successor is published before it is served. Those who
// follow the authorities learn of it in a moment, unless the API server is away.
const TrustDelay = time.Hour

// Action is what to do with the Secret.
type Action int

const (
	// Keep it as it is.
	Keep Action = iota
	// Replace the certificate at once: what there is cannot be used.
	Replace
	// Stage a successor, which is trusted from then on.
	Stage
	// Promote the successor to be served.
	Promote
)

// Decision is what to do now, and for what reason.
type Decision struct {
	Action Action
	Reason string
	// Names are what a new certificate is for, sorted.
	Names []string
	// Wait is the time until there may be something else to do.
	Wait time.Duration
}

// Decide says what has to be done at the time now so that found can be served
// under names without interruption.
func Decide(found Material, names []string, now time.Time) Decision {
	switch {
	case found.Current == nil:
		return Decision{Action: Replace, Reason: "there is no usable certificate", Names: sorted(names)}
	case !Covers(found.Current.Leaf, names):
		// Replicas that are about to be replaced may be reached by other names:
		// with all of them, the two do not undo each other's work.
		return Decision{
			Action: Replace, Reason: "the certificate is for other names",
			Names: sorted(append(namesOf(found.Current), names...)),
		}
	}
	if wait := renewal(found.Current).Sub(now); wait > 0 {
		return Decision{Action: Keep, Wait: wait}
	}
	next := found.Next
	if next == nil || !Covers(next.Leaf, names) || !next.Leaf.NotAfter.After(found.Current.Leaf.NotAfter) {
		return Decision{Action: Stage, Reason: "the certificate ends soon", Names: sorted(names)}
	}
	if wait := next.Leaf.NotBefore.Add(backdate + TrustDelay).Sub(now); wait > 0 {
		return Decision{Action: Keep, Wait: wait}
	}
	return Decision{Action: Promote, Reason: "the next certificate is trusted by now"}
}

// renewal is when a certificate gets a successor: when a third of its life is
// left, which is far longer than any outage that one hopes to sit out.
func renewal(certificate *tls.Certificate) time.Time {
	begin, end := certificate.Leaf.NotBefore.Add(backdate), certificate.Leaf.NotAfter
	return end.Add(-end.Sub(begin) / 3)
}

// Covers reports whether a certificate is for all of the names.
func Covers(certificate *x509.Certificate, names []string) bool {
	for _, name := range names {
		if certificate.VerifyHostname(name) != nil {
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
