package main

import (
	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/recipes"
)

func schemaCommand(con *console) *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		Short:   "print the JSON schema of recipes, for editors",
		Example: "  ropewalk schema > recipe.schema.json",
		Args:    exactly(),
		RunE: func(*cobra.Command, []string) error {
			_, err := con.out.Write(recipes.Schema())
			return err
		},
	}
}
