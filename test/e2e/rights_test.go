package e2e_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// TestGrantedRightsAreTakenUpAtOnce grants what a ServiceAccount lacks when it is
// long until the next try.
//
//nolint:paralleltest // what other tests grant would wake it
func TestGrantedRightsAreTakenUpAtOnce(t *testing.T) {
	const name = "ungranted"
	publish(t, operators(name, "1.0.0")...)
	makeNamespace(t, name)
	makeAccount(t, name)
	extendOnly(t, name)
	conditionContains(t, name, ocv1.TypeProgressing, "pre-authorization failed: ")

	// Each wait is twice as long as the one before.
	const long = 7 * time.Second
	eventually(t, "tries far apart", func(context.Context) error {
		tries := triesOf(t, name)
		if n := len(tries); n < 2 || tries[n-1].Sub(tries[n-2]) < long {
			return fmt.Errorf("it is tried at %v", tries)
		}
		return nil
	})
	before := len(triesOf(t, name))
	granted := time.Now()
	grant(t, name, "cluster-admin")
	installed(t, name, "1.0.0")
	next := triesOf(t, name)[before]
	if waited := next.Sub(granted); waited > long {
		t.Errorf("it went on %s after the grant, as if it had not heard of it", waited)
	} else {
		t.Logf("it went on %s after the grant", waited)
	}
}

// triesOf gives the times at which something was asked as the installer of an
// extension, those of one pass taken together.
func triesOf(t *testing.T, extension string) []time.Time {
	t.Helper()
	requests, err := theSuite.audit.ControllerRequests()
	if err != nil {
		t.Fatal(err)
	}
	var tries []time.Time
	for _, request := range requests {
		if request.ImpersonatedUser == nil || request.ImpersonatedUser.Username != "system:serviceaccount:"+extension+":"+installer {
			continue
		}
		at := request.StageTimestamp
		if n := len(tries); n == 0 || at.Sub(tries[n-1]) > 250*time.Millisecond {
			tries = append(tries, at)
		}
	}
	return tries
}
