import Foundation

/// How many rounds the tests of many rounds make.
///
/// `make test`, which newcomers and CI wait for, makes every kind of check with few rounds; `make test-deep` sets
/// `KEEPSAKE_DEEP=1` and makes many. If a count has a variable of its own, that overrides both.
package enum TestDepth {
  package static let isDeep = environment["KEEPSAKE_DEEP"] == "1"

  /// Simulated worlds of one seed each.
  package static let worlds = UInt64(count(100, deep: 1_000))
  /// Seeds whose worlds are compared with a second run.
  package static let repeatedWorlds: [UInt64] = isDeep ? [1, 77, 4_711] : [77]
  /// States of two wallets and their bank that are visited from each start.
  package static let walletStates = count(4_000, deep: 100_000)
  /// How often each planted bug has to be caught.
  package static let catches = count(1, deep: 5)
  /// Power cuts of the long run between its syncs, besides those before and after every sync.
  package static let powerCuts = count(50, deep: 1_000, variable: "KEEPSAKE_POWER_CUTS")
  /// Operations of that run, and steps of the same run with a game's own tables.
  package static let powerCutOperations = hasManyCuts ? 500 : 40
  package static let powerCutRecords = hasManyCuts ? 110 : 25
  private static let hasManyCuts = isDeep || environment["KEEPSAKE_POWER_CUTS"] != nil
  /// States of the disk at each power cut while a store is created.
  package static let creationCuts = count(3, deep: 15)
  /// SIGKILLs of a saving process.
  package static let kills = count(10, deep: 200, variable: "KEEPSAKE_STORE_KILLS")
  /// Rounds of SIGKILL of a server and of games that use its bank.
  package static let moneyKills = count(6, deep: 300, variable: "KEEPSAKE_MONEY_KILLS")
  /// The same with two servers and their database, which no other test may use meanwhile.
  package static let postgresKills = count(0, deep: 0, variable: "KEEPSAKE_POSTGRES_KILLS")
  /// Worlds of players, devices and the ways to them.
  package static let accountWorlds = count(150, deep: 1_000, variable: "KEEPSAKE_ACCOUNT_WORLDS")
  /// The seed of the first of them.
  package static let firstAccountWorld = count(1, deep: 1, variable: "KEEPSAKE_FIRST_ACCOUNT_WORLD")
  /// Games of each system that are killed right after one of its notifications.
  package static let lifecycles = UInt64(count(25, deep: 1_000, variable: "KEEPSAKE_LIFECYCLES"))
  /// Worlds of devices whose cloud forgets old versions.
  package static let prunedWorlds = UInt64(count(150, deep: 5_000))
  /// Autosaves a day of a player's year.
  package static let savesADay = count(12, deep: 120)
  /// SIGKILLs of the command that makes a backup, and of the one that restores it.
  package static let backupKills = count(6, deep: 100, variable: "KEEPSAKE_BACKUP_KILLS")
  /// Random moments at which a game's folder is taken away.
  package static let removals = count(20, deep: 300, variable: "KEEPSAKE_REMOVALS")
  /// The number of altered bytes in a store's files.
  package static let damagedBytes = count(60, deep: 300, variable: "KEEPSAKE_DAMAGE")
  /// Whether every page of a larger store is lost in turn.
  package static let everyPage = environment["KEEPSAKE_DAMAGE"] != nil
  /// Random JSON5 documents, each also with a character too many.
  package static let randomDocuments = count(500, deep: 20_000)
  /// How many of a larger store's first pages are lost in turn; of its other pages half as many are.
  package static let lostPages = count(6, deep: 20)
  /// How often two devices write to a cell, with every delivery between the writes.
  package static let interleavedWrites = count(3, deep: 4)
  /// Objects of a list of which each refers to the next.
  package static let listedObjects = count(100_000, deep: 1_000_000)
  /// Lists of a keyed archive of which each contains the next.
  package static let nestedLists = count(2_000, deep: 100_000)
  /// Saves, and values, that a device missed or couldn't send while it was offline.
  package static let missedSaves = count(2_000, deep: 10_000)
  package static let missedValues = count(1_000, deep: 5_000)
  /// Saves of a mirrored folder that arrive together.
  package static let mirroredFiles = count(200, deep: 1_000)
  /// Rounds with stores whose shared folder is transferred badly.
  package static let folderRounds = count(40, deep: 160, variable: "KEEPSAKE_FOLDER_ROUNDS")
  /// How often each archive is altered at random.
  package static let alteredArchives = count(3, deep: 3, variable: "KEEPSAKE_FUZZ_ROUNDS")
  /// How many altered messages of each form of an exchange are decoded.
  package static let alteredMessages = count(2_000, deep: 100_000, variable: "KEEPSAKE_MESSAGE_FUZZ")
  /// Whether every value of every byte of an archive is tried, with a matching checksum.
  package static let everyByteValue = environment["KEEPSAKE_ALL_BYTES"] != nil

  private static let environment = ProcessInfo.processInfo.environment

  private static func count(_ usual: Int, deep: Int, variable: String? = nil) -> Int {
    variable.flatMap { environment[$0] }.flatMap(Int.init) ?? (isDeep ? deep : usual)
  }
}
