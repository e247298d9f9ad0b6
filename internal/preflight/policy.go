package preflight

import (
	"fmt"
	"slices"

	"github.com/clusterextensions/operator-controller/internal/preflight/crdupgrade"
)

// Policy is what the owner of an extension wants of the checks. The zero value is
// what they do by default.
type Policy struct {
	Definitions crdupgrade.Policy
	Growth      Growth
}

// Growth is what becomes of an upgrade after which the operator may do more.
type Growth struct {
	// Approve lets it wait, unless its version is the approved one.
	Approve  bool
	Approved string

	// Withheld lets an upgrade wait in any case, when all else was checked.
	Withheld bool
}

// Waits says whether a version has to wait, which may need more rights than the one before.
func (g Growth) Waits(version string, grows bool) bool {
	return g.Withheld || grows && g.Approve && g.Approved != version
}

// Validate fails with a name that no check has: an exception that never applies
// would be found out when it is too late.
func (p Policy) Validate() error {
	for _, exception := range p.Definitions.Exceptions {
		if exception.Check != "" && !slices.Contains(crdupgrade.Checks(), exception.Check) {
			return fmt.Errorf("crdUpgradeSafety has an exception for the check %q, which does not exist; there are %q", exception.Check, crdupgrade.Checks())
		}
	}
	return nil
}
