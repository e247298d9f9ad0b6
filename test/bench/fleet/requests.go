package main

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/clusterextensions/operator-controller/test/environment"
)

// auditLag is by how much a line of the log can follow the answer.
const auditLag = 200 * time.Millisecond

// auditLog is the log of the API server since a moment.
type auditLog struct {
	environment.AuditLog

	since time.Time
}

// mark makes the next call of requests begin here.
func (a *auditLog) mark() {
	time.Sleep(auditLag)
	a.since = time.Now()
}

// requests are those of the controller since the mark. What it takes to lead, the
// lease and the event about it, is not among them: that is a matter of time, not
// of extensions.
func (a *auditLog) requests() ([]environment.Request, error) {
	time.Sleep(auditLag)
	all, err := a.ControllerRequests()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(all), func(r environment.Request) bool {
		return r.StageTimestamp.Before(a.since) || r.IsEndOfWatch() || isAboutLeading(r)
	}), nil
}

// isAboutLeading knows the event from those about extensions, which have no
// namespace and so tell their events in another one.
func isAboutLeading(r environment.Request) bool {
	return r.ObjectRef != nil && r.ObjectRef.Namespace == environment.SystemNamespace &&
		(r.ObjectRef.Resource == "leases" || r.ObjectRef.Resource == "events")
}

// watches are how many of the requests begin one.
func watches(requests []environment.Request) int {
	return countOf(requests, func(r environment.Request) bool { return r.Verb == "watch" })
}

func writes(requests []environment.Request) int {
	return countOf(requests, environment.Request.IsWrite)
}

func countOf(requests []environment.Request, counts func(environment.Request) bool) int {
	count := 0
	for _, r := range requests {
		if counts(r) {
			count++
		}
	}
	return count
}

// firstWriteFor is when the first write for an extension had succeeded: to itself, to its
// record or to its content, which is in the namespace of its name.
func firstWriteFor(requests []environment.Request, extension string) (first time.Time, ok bool) {
	for _, r := range requests {
		if !r.IsWrite() || !isFor(r, extension) || r.ResponseStatus.Code >= http.StatusBadRequest {
			continue
		}
		if !ok || r.StageTimestamp.Before(first) {
			first, ok = r.StageTimestamp, true
		}
	}
	return first, ok
}

func isFor(r environment.Request, extension string) bool {
	return r.ObjectRef != nil && (r.ObjectRef.Name == extension || r.ObjectRef.Namespace == extension ||
		r.IsRecord() && strings.Contains(r.ObjectRef.Name, "."+extension+"."))
}
