package e2e_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/clusterextensions/operator-controller/test/environment"
)

// checkIdentities finds writes that the controller sent in its own name although
// they are about content, and reads of Secrets of others that it did as itself, or tried to.
func checkIdentities(audit *environment.AuditLog) error {
	requests, err := audit.ControllerRequests()
	if err != nil {
		return err
	}
	var writes int
	var errs []error
	for _, request := range requests {
		if request.ImpersonatedUser != nil {
			if !strings.HasPrefix(request.ImpersonatedUser.Username, "system:serviceaccount:") {
				errs = append(errs, fmt.Errorf("content was touched as no ServiceAccount: %s", request))
			}
			if request.IsWrite() {
				writes++
			}
			continue
		}
		if request.IsRead() && !request.IsOwn() && request.ObjectRef != nil && request.ObjectRef.Resource == "secrets" {
			errs = append(errs, fmt.Errorf("the controller read Secrets in its own name: %s", request))
		}
		if !request.IsRead() && !request.IsOwn() && !request.IsRefusedIdentity() {
			errs = append(errs, fmt.Errorf("the controller wrote in its own name: %s", request))
		}
	}
	if writes == 0 {
		errs = append(errs, errors.New("the audit log shows no write of content at all: it is not what it should be"))
	}
	return errors.Join(errs...)
}

// checkControllerLog finds what no run may have, whatever its tests say.
func checkControllerLog(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for _, bad := range []string{"WARNING: DATA RACE", "panic:", "Observed a panic"} {
		if bytes.Contains(data, []byte(bad)) {
			return fmt.Errorf("the controller's log has %q: %s", bad, path)
		}
	}
	return nil
}
