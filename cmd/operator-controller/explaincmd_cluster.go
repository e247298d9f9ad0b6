package main

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/clusterextensions/operator-controller/internal/controller"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// clusterChoice is a choice that a controller has made, or will make, for an
// extension on its cluster.
type clusterChoice struct {
	access clusterAccess
}

func (o *clusterChoice) bind(flags *pflag.FlagSet) { o.access.bind(flags) }

// explain makes the choice for the named extension once more. The error says what of
// the cluster cannot be read that nothing can be said without.
func (o *clusterChoice) explain(ctx context.Context, name string) (*explained, error) {
	reader, err := o.access.reader(ctx)
	if err != nil {
		return nil, err
	}
	found, err := reader.Explain(ctx, name)
	if err != nil {
		return nil, err
	}
	answer := answerOf(found)
	answer.Unknown = append(answer.Unknown, reader.unknown...)
	return answer, nil
}

func answerOf(found controller.Explanation) *explained {
	var resolution resolve.Resolution
	if found.Resolution != nil {
		resolution = *found.Resolution
	}
	answer := newExplained(found.Request, found.Catalogs, resolution, found.Err)
	answer.supply(found.Supply)
	answer.Dependents, answer.Unknown = found.Dependents, found.Unknown
	answer.Reported = found.Reported
	if found.Resolution == nil && found.Err == nil {
		answer.Explanation = "there is no catalog to choose from; what is installed is kept"
		answer.Resolved = &chosenBundle{Name: found.Request.Installed.Name, Version: found.Request.Installed.Version}
	}
	return answer
}
