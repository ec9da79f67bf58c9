#if Cloud
import Foundation
import KeepsakeReplication
import KeepsakeStore
import KeepsakeSync

/// The cloud of a synced folder, as it was asked for.
enum SyncLocation: Sendable {
  case server(URL, appKey: String, joinCode: String?)
  /// A folder that another program carries between the devices.
  case folder(URL)
}

/// The way to a cloud, found or made.
struct SyncWay: Sendable {
  var transport: any Transport
  var container: ContainerID
  /// What goes over the wire; nil where there is none.
  var traffic: TrafficCounter?
  /// With a server: who this device is.
  var credentials: CloudCredentials?

  /// The way to `place`. Registers a device, joins a player or makes a folder a cloud where that is still to be done.
  ///
  /// - Throws: `CommandFailure` if the saves belong to another kind of cloud, or the shared folder has to do with them; what the account or
  ///   the folder says.
  static func open(_ place: SyncLocation, saves: String, state: SyncState, store: Store) async throws -> SyncWay {
    switch place {
    case .server(let url, let appKey, let joinCode):
      let credentials = try await credentials(url, appKey, joinCode, state, store)
      let http = HTTPTransport(credentials)
      return SyncWay(transport: http, container: credentials.container, traffic: http.traffic, credentials: credentials)
    case .folder(let shared):
      try requireApart(shared, from: [URL(fileURLWithPath: saves, isDirectory: true), state.url])
      guard try state.credentials() == nil else {
        throw CommandFailure(
          .data, "these saves are synced with a server", next: "name its --cloud instead of --folder, or a new --state to begin anew")
      }
      let container = try container(of: shared, for: store)
      let environment = FolderTransport.Environment(
        now: { Int64(Date().timeIntervalSince1970 * 1_000) }, sleep: { try await Task.sleep(for: $0) })
      let transport = FolderTransport(shared, container: container, environment: environment) { hash in
        try store.read { try $0.hasContent(hash) ? $0.encoded(hash, against: nil) : nil }
      }
      return SyncWay(transport: transport, container: container)
    }
  }

  // MARK: A server

  private static func credentials(
    _ url: URL, _ appKey: String, _ joinCode: String?, _ state: SyncState, _ store: Store
  ) async throws -> CloudCredentials {
    if var credentials = try state.credentials() {
      guard joinCode == nil else {
        throw CommandFailure(
          .data, "this folder belongs to a player already", next: "leave --join out, or name a new --state to join another player")
      }
      // A server may move; the token says who this is.
      credentials.url = url
      return credentials
    }
    // A new player could have nothing to do with what is here.
    guard try joinCode != nil || store.read({ try $0.facts().container }) == nil else {
      throw CommandFailure(
        .data, "these saves were synced before, and nothing says with which player of a server",
        next: "name the --folder that they are synced with, --join their player again, or name a new --state")
    }
    let account = HTTPAccount(url: url, appKey: appKey)
    let name = ProcessInfo.processInfo.hostName
    let credentials: CloudCredentials
    if let joinCode {
      credentials = try await account.join(code: joinCode, name: name)
    } else {
      credentials = try await account.register(name: name)
    }
    try state.keep(credentials)
    return credentials
  }

  // MARK: A folder

  /// A store that belongs somewhere goes on with that, whether the folder is there or not: the transport says what is wrong with it.
  private static func container(of shared: URL, for store: Store) throws -> ContainerID {
    if let held = try store.read({ try $0.facts().container }) { return held }
    var isFolder: ObjCBool = false
    guard FileManager.default.fileExists(atPath: shared.path, isDirectory: &isFolder), isFolder.boolValue else {
      throw CommandFailure(.noInput, "there is no folder \(shared.path)", next: "make it first; the first device finds it empty")
    }
    var random = SystemRandomNumberGenerator()
    return try FolderTransport.container(of: shared, making: ContainerID(using: &random))
  }

  /// One inside the other would carry the cloud's own files as saves, or a store that is being written from device to device.
  private static func requireApart(_ shared: URL, from others: [URL]) throws {
    func parts(_ url: URL) -> [String] { url.resolvingSymlinksInPath().standardizedFileURL.pathComponents }
    for other in others {
      guard parts(other).starts(with: parts(shared)) || parts(shared).starts(with: parts(other)) else { continue }
      throw CommandFailure(
        .data, "the shared folder \(shared.path) and \(other.path) lie in each other", next: "share a folder of its own, beside the saves")
    }
  }
}
#endif
