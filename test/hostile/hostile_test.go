package hostile_test

import (
	"testing"
	"time"
)

const (
	// maxDelay is by how much longer honest work may take beside an attack.
	maxDelay = 10 * time.Second

	// lead is how long an attack goes on before honest work begins.
	lead = 3 * time.Second
)

// attack is what somebody does who may do what the threat model says of them.
type attack struct {
	name string

	// begin starts it. It goes on until the test is over, or as long as it can.
	begin func(t *testing.T)
}

// TestNobodyHoldsUpOthers has a controller with the memory of a deployed one do the work
// of honest extensions beside each of the attacks. It survives all of them, and the work
// takes not much longer.
func TestNobodyHoldsUpOthers(t *testing.T) { //nolint:paralleltest // one attack at a time
	h := newHonest(t)
	alone := max(h.round(t), h.round(t))
	for _, a := range attacks() { //nolint:paralleltest // one at a time
		t.Run(a.name, func(t *testing.T) {
			a.begin(t)
			time.Sleep(lead)
			if took := h.round(t); took > alone+maxDelay {
				t.Errorf("honest work took %v, and %v without the attack", took, alone)
			}
			stillThere(t)
		})
	}
}

// stillThere holds if the controller was never killed.
func stillThere(t *testing.T) {
	t.Helper()
	kills, err := theSuite.Memory.Kills()
	if err != nil {
		t.Fatal(err)
	}
	peak, err := theSuite.Memory.Peak()
	if err != nil {
		t.Fatal(err)
	}
	resident, err := theSuite.Memory.Resident()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the most memory so far: %d MiB of %d, and %d with files that it has read or written", resident>>20, theSuite.limit>>20, peak>>20)
	if kills > 0 {
		t.Fatalf("the kernel has killed the controller %d times for its memory", kills)
	}
	if err := theSuite.controller.Running(); err != nil {
		t.Fatal(err)
	}
}
