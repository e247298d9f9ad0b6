package crdupgrade

import (
	"fmt"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

const (
	// maxFindings is how many findings there are about one definition. The largest
	// real upgrades have some hundreds.
	maxFindings = 5000
	// maxPath is how many bytes the path of a finding may have.
	maxPath = 1024
)

// findings are those about one definition.
type findings struct {
	crd string
	all []Finding
	// more counts what was found beyond the limit; worst is the worst kind of it.
	more  int
	worst Kind
}

// add notes something about the whole definition.
func (f *findings) add(kind Kind, check, detail string) {
	f.put(Finding{Kind: kind, Check: check, Detail: detail})
}

func (f *findings) put(finding Finding) {
	if len(f.all) == maxFindings {
		if f.more == 0 || finding.Kind.rank() < f.worst.rank() {
			f.worst = finding.Kind
		}
		f.more++
		return
	}
	finding.CRD = f.crd
	finding.Path = excerpt.Line(finding.Path, maxPath)
	finding.Detail = excerpt.Line(finding.Detail, maxDetail)
	finding.Advice = adviceOn(finding.Check)
	f.all = append(f.all, finding)
}

// sorted returns all findings, and one that counts the others.
func (f *findings) sorted() []Finding {
	all := f.all
	if f.more > 0 {
		all = append(all, Finding{
			CRD: f.crd, Check: checkUnhandled, Kind: f.worst, Advice: adviceOn(checkUnhandled),
			Detail: fmt.Sprintf("%d more changes found", f.more),
		})
	}
	return Sort(all)
}
