#if Cloud
import ArgumentParser
import Foundation
import KeepsakeServer

/// What the commands that read a cloud's database beside its servers have in common.
struct CloudDatabaseOptions: ParsableArguments {
  @OptionGroup var folder: CloudFolderOptions

  @Option(
    name: .long,
    help: ArgumentHelp(
      "Where the cloud's PostgreSQL database is, if it has one, as for keepsake serve; also KEEPSAKE_DATABASE.",
      valueName: "address"))
  var database: String?

  var data: String { folder.data }
  var json: Bool { folder.json }

  func address() throws -> String? { try Self.address(database) }

  /// Returns the address that was given, or that the environment has.
  ///
  /// - Throws: `CommandFailure` for an address that is empty: another database would be taken for it.
  static func address(_ given: String?) throws -> String? {
    let variable = ServeSetting.named("database")?.variable ?? ""
    let address = given ?? ProcessInfo.processInfo.environment[variable]
    guard address?.isEmpty != true else { throw CommandFailure(.usage, "the database's address is empty") }
    return address
  }

  func keys() throws -> AdminKeys { try AdminKeys(data: folder.folder, database: address()) }
  func audit() throws -> AuditReader { try AuditReader(data: folder.folder, database: address()) }
}
#endif
