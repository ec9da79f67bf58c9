#if Cloud
import ArgumentParser
import Foundation

/// The options that name the cloud of a folder of saves.
struct SyncTargetOptions: ParsableArguments {
  @Option(name: .long, help: ArgumentHelp("The cloud's address, as keepsake serve prints it.", valueName: "url"))
  var cloud: String?

  @Option(name: .long, help: ArgumentHelp("The cloud's app key, as keepsake serve prints it.", valueName: "key"))
  var appKey: String?

  @Option(
    name: [.customLong("folder")],
    help: ArgumentHelp("A folder that the devices share, instead of a cloud.", valueName: "dir"),
    completion: .directory)
  var shared: String?

  @Option(
    name: .long,
    help: ArgumentHelp("Join the player of another device with the code that --pair printed there.", valueName: "code"))
  var join: String?

  @Flag(name: .long, help: "Print a code with which another device can join.")
  var pair = false

  /// Returns the cloud that the options name; nil if they name none.
  ///
  /// - Throws: `ValidationError` for options that don't belong together.
  func location() throws -> SyncLocation? {
    if let shared {
      guard cloud == nil, appKey == nil else {
        throw ValidationError("--folder can't be used together with --cloud or --app-key.")
      }
      guard join == nil, !pair else {
        throw ValidationError(
          "--pair and --join are not for a shared folder: name the same --folder on the other device.")
      }
      return .folder(URL(fileURLWithPath: shared, isDirectory: true))
    }
    guard cloud != nil || appKey != nil || join != nil || pair else { return nil }
    guard let cloud, let appKey else {
      throw ValidationError("Name a server with --cloud and --app-key, or a shared folder with --folder.")
    }
    guard let url = URL(string: cloud), ["http", "https"].contains(url.scheme?.lowercased() ?? ""), url.host != nil
    else {
      throw ValidationError("--cloud takes a URL such as http://127.0.0.1:8080.")
    }
    return .server(url, appKey: appKey, entry: join.map(SyncEntry.pairing) ?? .register)
  }
}

/// The options of watching a folder of saves.
struct FolderWatchOptions: ParsableArguments {
  @Option(name: .long, help: ArgumentHelp("How often the folder is checked, in milliseconds.", valueName: "ms"))
  var interval: Int = 300

  @Option(
    name: .long,
    help: ArgumentHelp(
      "How long a file has to be unchanged before it counts as complete, in milliseconds.", valueName: "ms"))
  var settle: Int = 300

  /// The shortest and the longest sensible times: below, the disk would be read all the time; above, changes would stay
  /// unsaved for hours.
  private static let milliseconds = 10...3_600_000

  func check() throws {
    guard Self.milliseconds.contains(interval) else { throw ValidationError("--interval takes 10 to 3600000 ms.") }
    guard Self.milliseconds.contains(settle) else { throw ValidationError("--settle takes 10 to 3600000 ms.") }
  }
}
#endif
