#if Cloud
import ArgumentParser
import KeepsakeReplication
import Foundation
import KeepsakeServer
import Logging

/// `keepsake serve`: runs the cloud as one process with one folder.
struct ServeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "serve",
    abstract: "Run a cloud: one process, one folder.",
    discussion: """
      Prints its URL and app key once it accepts requests, and runs until SIGTERM or SIGINT. It speaks plain HTTP and \
      listens only to this machine unless --host says otherwise: put a TLS proxy in front of it before you open it to \
      others.
      """)

  @Option(
    name: .long,
    help: ArgumentHelp("The folder of the cloud's data; created if it doesn't exist.", valueName: "folder"),
    completion: .directory)
  var data: String

  @Option(name: .long, help: "The port; 0 picks any free one.")
  var port: Int = 8080

  @Option(name: .long, help: "The address to listen on.")
  var host: String = "127.0.0.1"

  @Option(
    name: .long,
    help: ArgumentHelp(
      "A key with which games register; may be repeated. Without one, a key is created at the first start.",
      valueName: "key")
  )
  var appKey: [String] = []

  @Option(
    name: .long,
    help: ArgumentHelp(
      """
      How much each player may store: bytes, or a number with K, M, G or T (1G is 1 GiB). Without it, the only limit \
      is the disk.
      """,
      valueName: "size"))
  var quota: ByteSize?

  @Option(
    name: .long,
    help: ArgumentHelp(
      """
      Currencies that no device can earn, separated by commas: only orders of the game's own servers make more of \
      them.
      """,
      valueName: "currencies"))
  var authoritative: String?

  @Option(
    name: .long,
    help: ArgumentHelp(
      """
      A proxy, or a range of them (10.0.0.0/8), whose X-Forwarded-For says who a client is; may be repeated. Without \
      it, limits by address count a proxy as one client.
      """,
      valueName: "range"))
  var trustedProxy: [String] = []

  @Flag(name: .long, help: "Connections from trusted proxies begin with the header of the PROXY protocol (v1 or v2).")
  var proxyProtocol = false

  @Option(
    name: .long,
    help: ArgumentHelp(
      "New players from one address in an hour, a sixth of them at once: 600 by default.", valueName: "count"))
  var registrationsPerAddress: Int?

  @Flag(name: .long, help: "Print JSON.")
  var json = false

  // For processes that start a server temporarily: its input ends however such a process ends.
  @Flag(name: .long, help: .hidden)
  var untilInputEnds = false

  func validate() throws {
    guard (0...65_535).contains(port) else { throw ValidationError("--port takes a number from 0 to 65535.") }
    guard appKey.allSatisfy({ !$0.isEmpty }) else { throw ValidationError("--app-key can't be empty.") }
    guard authoritative == nil || !currencies.isEmpty else {
      throw ValidationError("--authoritative takes names of currencies, separated by commas.")
    }
    for text in trustedProxy where AddressRange(text) == nil {
      throw ValidationError("--trusted-proxy takes an address or a range such as 10.0.0.0/8, not \(text).")
    }
    guard !proxyProtocol || !trustedProxy.isEmpty else {
      throw ValidationError("--proxy-protocol needs --trusted-proxy: the proxies that are believed.")
    }
    guard registrationsPerAddress ?? 1 > 0 else {
      throw ValidationError("--registrations-per-address takes a number above 0.")
    }
  }

  /// What `--authoritative` lists.
  private var currencies: Set<String> {
    Set((authoritative ?? "").split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) })
      .subtracting([""])
  }

  func run() async throws {
    try await CommandRun.reporting(json: json) {
      let json = json
      let quota = quota
      let untilInputEnds = untilInputEnds
      // Standard output is for the one line that other programs wait for.
      LoggingSystem.bootstrap { label in
        var handler = StreamLogHandler.standardError(label: label)
        handler.logLevel = .notice
        return handler
      }
      var configuration = ServerConfiguration(
        data: URL(fileURLWithPath: data, isDirectory: true), port: port, host: host, appKeys: appKey)
      configuration.quota = quota?.bytes
      configuration.authoritative = currencies
      configuration.trustedProxies = trustedProxy.compactMap { AddressRange($0) }
      configuration.expectsProxyProtocol = proxyProtocol
      if let registrationsPerAddress {
        configuration.rates.registrations = .hourly(Int64(registrationsPerAddress))
      }
      try await KeepsakeServer.run(configuration: configuration) { server in
        if json {
          Output.line(
            Hello(
              url: server.url.absoluteString, port: server.port, appKey: server.appKeys.first ?? "",
              appKeys: server.appKeys))
        } else {
          let keys = server.appKeys.joined(separator: ", ")
          Output.text("serving \(server.url.absoluteString)  app key: \(Printable.text(keys))")
        }
        if untilInputEnds { Self.stopWhenInputEnds(server) }
      }
    }
  }

  /// Stops the server, as SIGTERM does, once standard input ends.
  private static func stopWhenInputEnds(_ server: RunningServer) {
    let reader = Thread {
      do {
        // The input itself is ignored; only its end matters.
        while let data = try FileHandle.standardInput.read(upToCount: 4_096), !data.isEmpty {}
      } catch {
        // An input that can't be read counts as ended.
        Output.complaint("keepsake: standard input can't be read: \(ErrorReason.text(error))")
      }
      server.stop()
    }
    reader.start()
  }

  /// The line that `--json` prints once the server listens.
  struct Hello: Codable {
    var url: String
    var port: Int
    /// The first of `appKeys`: the only one if none was given.
    var appKey: String
    var appKeys: [String]
  }
}
#endif
