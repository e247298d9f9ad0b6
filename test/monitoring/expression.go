package monitoring

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Expression is what a query asks for.
type Expression struct {
	Selectors []Selector

	// Labels are those by which series are grouped or matched, sorted.
	Labels []string
}

// Selector asks for the series of a metric.
type Selector struct {
	Metric   string
	Matchers []Matcher
}

// Matcher is one for a label; Operator is =, !=, =~ or !~.
type Matcher struct{ Label, Operator, Value string }

// String is the selector in PromQL.
func (s Selector) String() string {
	matchers := make([]string, 0, len(s.Matchers))
	for _, matcher := range s.Matchers {
		matchers = append(matchers, fmt.Sprintf("%s%s%q", matcher.Label, matcher.Operator, matcher.Value))
	}
	return s.Metric + "{" + strings.Join(matchers, ",") + "}"
}

// Parse has Prometheus read a query. A query that it does not understand is an error.
func (p *Prometheus) Parse(ctx context.Context, query string) (Expression, error) {
	address := p.client.URL("/api/v1/parse_query", nil)
	address.RawQuery = url.Values{"query": {query}}.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), http.NoBody)
	if err != nil {
		return Expression{}, fmt.Errorf("asking Prometheus: %w", err)
	}
	_, body, err := p.client.Do(ctx, request) //nolint:bodyclose // the client has read it, and closed it
	if err != nil {
		return Expression{}, fmt.Errorf("asking Prometheus: %w", err)
	}
	var answer struct {
		Error string `json:"error"`
		Data  *node  `json:"data"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return Expression{}, fmt.Errorf("reading what Prometheus has parsed: %w", err)
	}
	if answer.Data == nil {
		return Expression{}, fmt.Errorf("parsing %q: %s", query, answer.Error)
	}
	expression := Expression{}
	answer.Data.collect(&expression)
	slices.Sort(expression.Labels)
	expression.Labels = slices.Compact(expression.Labels)
	return expression, nil
}

// node is one of the tree that Prometheus makes of a query.
type node struct {
	Type string `json:"type"`

	// Of a selector.
	Name     string `json:"name"`
	Matchers []struct {
		Name  string `json:"name"`
		Type  string `json:"type"`
		Value string `json:"value"`
	} `json:"matchers"`

	// Of an aggregation.
	Grouping []string `json:"grouping"`

	// Of two expressions that are matched.
	Matching *struct {
		Labels  []string `json:"labels"`
		Include []string `json:"include"`
	} `json:"matching"`

	// What a node consists of.
	Expr  *node   `json:"expr"`
	Param *node   `json:"param"`
	Left  *node   `json:"lhs"`
	Right *node   `json:"rhs"`
	Args  []*node `json:"args"`
}

func (n *node) collect(into *Expression) {
	if n == nil {
		return
	}
	if n.Type == "vectorSelector" || n.Type == "matrixSelector" {
		selector := Selector{Metric: n.Name}
		for _, matcher := range n.Matchers {
			if matcher.Name != "__name__" {
				selector.Matchers = append(selector.Matchers, Matcher{Label: matcher.Name, Operator: matcher.Type, Value: matcher.Value})
			}
		}
		into.Selectors = append(into.Selectors, selector)
	}
	into.Labels = append(into.Labels, n.Grouping...)
	if n.Matching != nil {
		into.Labels = append(append(into.Labels, n.Matching.Labels...), n.Matching.Include...)
	}
	for _, part := range append([]*node{n.Expr, n.Param, n.Left, n.Right}, n.Args...) {
		part.collect(into)
	}
}
