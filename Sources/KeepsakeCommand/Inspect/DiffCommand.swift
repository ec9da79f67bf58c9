#if Cloud
import ArgumentParser
import Foundation
import Keepsake
import KeepsakeArchive
import KeepsakeInspection
import KeepsakeInterchange
import KeepsakeStore

/// `keepsake diff`: shows what differs between two saves.
struct DiffCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "diff",
    abstract:
      "Show the differences between two archives, property lists, keyed archives or JSON files, field by field.",
    discussion: """
      Compares archives, exported saves, property lists (binary and XML), keyed archives and JSON. The two may be of \
      different formats, and one may be standard input (-). With --slot it compares saved games in stores: keepsake \
      diff STORE --slot main --from VERSION shows what changed since that version. Objects and list elements are \
      matched by a field "id" if they have one, otherwise by position; the numbers of objects in archives don't \
      matter. Only contents count: in a keyed archive, an NSMutableArray is the same as an NSArray, unless --classes \
      asks for more. Exit status: 0 if both have the same contents, 1 if they differ, and the status of the failure \
      if they can't be compared.
      """,
    examples: [
      "keepsake diff yesterday.plist today.plist",
      "keepsake diff STORE --slot main --from 5f2c",
      "keepsake diff --classes hero.archive hero.json",
    ])

  @Argument(help: "The older archive, exported save or store.", completion: .file())
  var first: String

  @Argument(help: "The newer one; with --slot, the same store if left out.", completion: .file())
  var second: String?

  @Option(name: .shortAndLong, help: "Compare the saved games in this slot of a store.")
  var slot: String?

  @Option(help: "This version of the slot in the older store, instead of the current one.")
  var from: String?

  @Option(help: "This version of the slot in the newer store, instead of the current one.")
  var to: String?

  @Flag(help: "Compare the classes of a keyed archive's objects, too: their names, and those of their superclasses.")
  var classes = false

  @OptionGroup var seal: SealOptions

  @Flag(name: .shortAndLong, help: "List every change, however many there are.")
  var all = false

  @OptionGroup var color: ColorOptions

  @Flag(name: .shortAndLong, help: "Print JSON.")
  var json = false

  /// The exit status for a difference. That of a failure is higher, as in POSIX diff.
  static let different: Int32 = 1

  func validate() throws {
    guard slot != nil || (from == nil && to == nil) else { throw ValidationError("--from and --to need --slot.") }
    guard first != InputKind.standard || second != first else {
      throw ValidationError("Only one of the two can be standard input.")
    }
    guard second != nil || slot != nil else { throw ValidationError("Name two files, or one store and --slot.") }
    guard second != nil || from != nil || to != nil else {
      throw ValidationError("With one store, name a version: --from VERSION. keepsake history lists them.")
    }
  }

  /// Returns one side. A failure names the file, since both may have the same name in different folders.
  static func archive(
    at path: String, slot: String?, version: String?, seal: SealRequest? = nil
  ) throws -> ArchiveInspection {
    try InspectCommand.naming(path) {
      let inspection = try inspection(at: path, slot: slot, version: version, seal: seal)
      try SpellingRoom.check(inspection)
      return inspection
    }
  }

  private static func inspection(
    at path: String, slot: String?, version: String?, seal: SealRequest?
  ) throws -> ArchiveInspection {
    switch try InputKind(of: path) {
    case .archive(let data):
      guard version == nil else {
        throw CommandFailure(
          .usage, "\(path) is not a store, so it has no versions", next: "leave out --from and --to")
      }
      let file = try ExportedSave.plain(OpenedFile(data, at: path), seal: seal)
      var archive = try InspectCommand.inspection(of: file)
      archive.source = InspectedSource(path: path)
      return archive
    case .store(let url):
      guard let slot else {
        throw CommandFailure(
          .usage, "\(path) is a store", next: "choose a saved game with --slot; keepsake history lists them")
      }
      return try InspectCommand.save(in: StoreReader.open(at: url, seal: seal), at: path, slot: slot, version: version)
    }
  }

  func difference(_ progress: (String) -> Void = { _ in }) throws -> ArchiveDifference {
    let request = try seal.request()
    func side(_ path: String, _ version: String?) throws -> ArchiveInspection {
      progress("reading \(Printable.text(path))")
      return try Self.archive(at: path, slot: slot, version: version, seal: request)
    }
    let (old, new) = (try side(first, from), try side(second ?? first, to))
    progress("comparing \(Printable.text(first)) and \(Printable.text(second ?? first))")
    var difference =
      all
      ? ArchiveDifference(from: old, to: new, changesPerPattern: .max, maximumChanges: .max)
      : ArchiveDifference(from: old, to: new)
    guard classes else { return difference }
    if all {
      difference.compareClasses(of: old, and: new, perKind: .max)
    } else {
      difference.compareClasses(of: old, and: new)
    }
    return difference
  }

  func run() async throws {
    try await CommandRun.reporting(json: json, looksInside: true) {
      let progress = ProgressLine(json: json)
      let difference = try difference { progress.update($0) }
      progress.clear()
      if json {
        Output.bytes(difference.json())
      } else if !difference.isEmpty {
        Output.bytes(Data(difference.text(paint: color.terminal.paint).utf8))
      }
      guard difference.isEmpty else { throw ExitCode(Self.different) }
    }
  }
}
#endif
