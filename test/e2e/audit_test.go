package e2e_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/clusterextensions/operator-controller/test/environment"
)

// auditEvent is one line of the audit log, as far as the tests read it.
type auditEvent struct {
	Verb       string `json:"verb"`
	RequestURI string `json:"requestURI"`
	User       struct {
		Username string `json:"username"`
	} `json:"user"`
	ImpersonatedUser *struct {
		Username string `json:"username"`
	} `json:"impersonatedUser"`
	ObjectRef *struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	StageTimestamp time.Time `json:"stageTimestamp"`
}

func (e auditEvent) String() string {
	as := ""
	if e.ImpersonatedUser != nil {
		as = " as " + e.ImpersonatedUser.Username
	}
	return fmt.Sprintf("%s %s%s", e.Verb, e.RequestURI, as)
}

func (e auditEvent) isWrite() bool {
	return !slices.Contains([]string{"get", "list", "watch"}, e.Verb)
}

// controllerEvents gives what the controller sent, in whoever's name.
func controllerEvents(path string) ([]auditEvent, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var events []auditEvent
	scanner := bufio.NewScanner(bytes.NewReader(data))
	scanner.Buffer(nil, 16<<20)
	for scanner.Scan() {
		var event auditEvent
		if err := json.Unmarshal(scanner.Bytes(), &event); err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		if event.User.Username == environment.ControllerUser {
			events = append(events, event)
		}
	}
	return events, scanner.Err()
}

// ownResources are what the controller may write in its own name.
var ownResources = []string{"clusterextensions", "clustercatalogs", "leases", "events"}

// checkIdentities finds writes that the controller sent in its own name although
// they are about content, and reads of content that it did as itself.
func checkIdentities(path string) error {
	events, err := controllerEvents(path)
	if err != nil {
		return err
	}
	var writes int
	var errs []error
	for _, event := range events {
		if event.ImpersonatedUser != nil {
			if !strings.HasPrefix(event.ImpersonatedUser.Username, "system:serviceaccount:") {
				errs = append(errs, fmt.Errorf("content was touched as no ServiceAccount: %s", event))
			}
			if event.isWrite() {
				writes++
			}
			continue
		}
		if event.isWrite() && !isOwn(event) {
			errs = append(errs, fmt.Errorf("the controller wrote in its own name: %s", event))
		}
	}
	if writes == 0 {
		errs = append(errs, errors.New("the audit log shows no write of content at all: it is not what it should be"))
	}
	return errors.Join(errs...)
}

func isOwn(event auditEvent) bool {
	if event.ObjectRef == nil {
		return false
	}
	if event.ObjectRef.Resource == "secrets" {
		return event.ObjectRef.Namespace == environment.SystemNamespace
	}
	return slices.Contains(ownResources, event.ObjectRef.Resource)
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
