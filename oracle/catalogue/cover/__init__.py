"""Few cases in which all pairs or triples of conditions meet."""
