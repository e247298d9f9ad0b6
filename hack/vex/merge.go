package main

import (
	"cmp"
	"slices"
	"strings"
)

const (
	modulePath = "github.com/clusterextensions/operator-controller"
	author     = "https://github.com/clusterextensions"

	// action is the action for each vulnerability whose code is called.
	action = "The vulnerable code is called in this version. Upgrade to the first later release " +
		"whose notes name this vulnerability as fixed."
)

// Statuses and justifications of OpenVEX that govulncheck writes.
const (
	statusAffected = "affected"
	notExecuted    = "vulnerable_code_not_in_execute_path"
	notPresent     = "vulnerable_code_not_present"
)

// document is an OpenVEX document.
type document struct {
	Context    string      `json:"@context"`
	ID         string      `json:"@id"`
	Author     string      `json:"author"`
	Timestamp  string      `json:"timestamp"`
	Version    int         `json:"version"`
	Tooling    string      `json:"tooling,omitempty"`
	Statements []statement `json:"statements"`
}

type statement struct {
	Vulnerability   vulnerability `json:"vulnerability"`
	Products        []product     `json:"products"`
	Status          string        `json:"status"`
	Justification   string        `json:"justification,omitempty"`
	ImpactStatement string        `json:"impact_statement,omitempty"`
	ActionStatement string        `json:"action_statement,omitempty"`
}

type vulnerability struct {
	ID          string   `json:"@id,omitempty"`
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Aliases     []string `json:"aliases,omitempty"`
}

type product struct {
	component
	Subcomponents []component `json:"subcomponents,omitempty"`
}

type component struct {
	ID string `json:"@id"`
}

// gravity orders the results of govulncheck: a higher number is closer to a vulnerable program.
func (s statement) gravity() int {
	switch {
	case s.Status == statusAffected:
		return 3
	case s.Justification == notExecuted:
		return 2
	case s.Justification == notPresent:
		return 1
	}
	// An unknown result excuses nothing.
	return 4
}

// merge returns one document with one statement for each vulnerability, the gravest of all
// documents, and with the subcomponents of all of them. The result is sorted by vulnerability.
func merge(documents []document) document {
	merged := document{Statements: []statement{}}
	found := map[string]statement{}
	for _, one := range documents {
		merged.Context, merged.Version, merged.Tooling = one.Context, one.Version, one.Tooling
		// RFC 3339 in UTC sorts by time.
		merged.Timestamp = max(merged.Timestamp, one.Timestamp)
		for _, stated := range one.Statements {
			before, ok := found[stated.Vulnerability.Name]
			components := slices.Concat(before.components(), stated.components())
			if ok && before.gravity() >= stated.gravity() {
				stated = before
			}
			slices.SortFunc(components, func(a, b component) int { return cmp.Compare(a.ID, b.ID) })
			stated.Products = []product{{Subcomponents: slices.Compact(components)}}
			found[stated.Vulnerability.Name] = stated
		}
	}
	for _, stated := range found {
		merged.Statements = append(merged.Statements, stated)
	}
	slices.SortFunc(merged.Statements, func(a, b statement) int { return cmp.Compare(a.Vulnerability.Name, b.Vulnerability.Name) })
	return merged
}

// components returns the modules that the statement is about. govulncheck escapes the slashes in
// their names, which scanners would compare with the unescaped ones of an SBOM.
func (s statement) components() []component {
	var all []component
	for _, one := range s.Products {
		for _, module := range one.Subcomponents {
			all = append(all, component{strings.ReplaceAll(module.ID, "%2F", "/")})
		}
	}
	return all
}

// name sets the author, the address of the document, and the products of each statement.
func (d *document) name(version string, products []string) {
	d.Author = author
	d.ID = "https://" + modulePath + "/releases/download/" + version + "/operator-controller_" + strings.TrimPrefix(version, "v") + ".openvex.json"
	for i := range d.Statements {
		stated := &d.Statements[i]
		if stated.Status == statusAffected {
			stated.ActionStatement = action
		}
		components := stated.components()
		stated.Products = nil
		for _, one := range products {
			stated.Products = append(stated.Products, product{component{one}, components})
		}
	}
}
