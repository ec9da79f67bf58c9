// What a source file imports that queries the game's own tables (`GameData.records`) or a `ReferenceDatabase`: GRDB,
// under a name of this package. `Keepsake` itself doesn't re-export it, so that GRDB's names and its operators for SQL
// expressions aren't in each file of each game. Part of the product Keepsake: a game names no second package.
@_exported public import GRDB
