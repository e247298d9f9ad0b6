package cluster

import (
	"fmt"
	"os"
	"path/filepath"
)

// Audit says what the API server records of the requests it gets.
type Audit struct {
	// Log is the file that gets one JSON object for each finished request: an
	// Event of audit.k8s.io/v1 with the verb, the user, the impersonated user
	// and the object. It is appended to and left in place by Stop. A line
	// can follow the response it is about by a moment.
	Log string
	// Level is how much is recorded: Metadata, Request or RequestResponse.
	// Default: Metadata. Policy has its own levels.
	Level string
	// Policy is an audit policy, in YAML. Default: everything except what the
	// components of the cluster do on their own and the probing of health.
	Policy string
}

const defaultAuditLevel = "Metadata"

// auditPolicy leaves out the components, because their requests come at any
// time and would drown those of the program under test. The rules are about who
// sends a request, not about whom it impersonates.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  users:
  - system:apiserver
  - system:kube-controller-manager
  - system:kube-scheduler
  - ` + kwokUser + `
- level: None
  userGroups: [system:nodes, "system:serviceaccounts:kube-system"]
- level: None
  nonResourceURLs: ["/healthz*", "/livez*", "/readyz*"]
- level: %s
`

func (a Audit) completed() (Audit, error) {
	if a.Log == "" {
		return a, fmt.Errorf("%w: audit without a log", ErrInvalidOptions)
	}
	path, err := filepath.Abs(a.Log)
	if err != nil {
		return a, fmt.Errorf("locating audit log: %w", err)
	}
	a.Log = path
	if a.Level == "" {
		a.Level = defaultAuditLevel
	}
	if a.Policy == "" {
		a.Policy = fmt.Sprintf(auditPolicy, a.Level)
	}
	return a, nil
}

// flags writes the policy and makes the API server follow it. The log is
// written in the course of a request, not batched, so that a test need not wait
// for a buffer to be flushed. It stays one file however long it gets: who reads it while
// it grows would miss what is moved away.
func (a *Audit) flags(policyPath string) (Flags, error) {
	if a == nil {
		return Flags{}, nil
	}
	if err := os.WriteFile(policyPath, []byte(a.Policy), 0o600); err != nil {
		return nil, fmt.Errorf("writing audit policy: %w", err)
	}
	return Flags{
		"audit-log-maxsize": "0",
		"audit-log-mode":    "blocking",
		"audit-log-path":    a.Log,
		"audit-policy-file": policyPath,
	}, nil
}
