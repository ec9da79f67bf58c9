#if Cloud
import ArgumentParser
import Configuration
import Foundation
import KeepsakeReplication
import KeepsakeServer
import TestSupport
import Testing

@testable import KeepsakeCommand

/// `keepsake serve`: settings by flags, environment and file.
@Suite struct ServeSettingsTests {
  private func file(_ text: String, in folder: TemporaryFolder) throws -> String {
    let url = folder.url.appendingPathComponent("\(UUID().uuidString).json")
    try Data(text.utf8).write(to: url)
    return url.path
  }

  private func settings(
    _ flags: [String: ConfigValue] = [:], _ environment: [String: String] = [:], file: String? = nil
  ) throws -> ServeSettings {
    try ServeSettings(flags: flags, environment: environment, file: file)
  }

  private func source(_ name: String, in settings: ServeSettings) -> String? {
    settings.resolved.first { $0.setting.name == name }?.source
  }

  @Test("a flag counts before the environment, the environment before the file, and the file before the default")
  func order() throws {
    let folder = try TemporaryFolder()
    let path = try file(#"{"port": 3, "host": "::1", "metrics-port": 0, "token-days": 30}"#, in: folder)
    let environment = ["KEEPSAKE_PORT": "2", "KEEPSAKE_HOST": "localhost", "OTHER_PORT": "9"]
    let all = try settings(["port": 1], environment, file: path)
    #expect(all.number("port") == 1 && source("port", in: all) == "flag --port")
    #expect(all.text("host") == "localhost" && source("host", in: all) == "environment KEEPSAKE_HOST")
    #expect(all.number("metrics-port") == 0 && source("metrics-port", in: all) == "file \(path)")
    #expect(all.text("log-format") == "text" && source("log-format", in: all) == "default")
    #expect(all.text("quota") == "64M" && source("quota", in: all) == "default")
    let named = try settings([:], ["KEEPSAKE_CONFIG": path])
    #expect(named.number("token-days") == 30)
  }

  @Test("lists, flags and sizes are read from each source")
  func kinds() throws {
    let folder = try TemporaryFolder()
    let words = try file(#"{"authoritative": ["gems", "tickets"], "behind-proxy": true, "quota": 1024}"#, in: folder)
    let one = try file(#"{"authoritative": "gems", "behind-proxy": false, "quota": "1G"}"#, in: folder)
    let environment = ["KEEPSAKE_AUTHORITATIVE": "gems, tickets", "KEEPSAKE_BEHIND_PROXY": "true"]
    for all in [try settings(file: words), try settings([:], environment)] {
      #expect(all.list("authoritative") == ["gems", "tickets"] && all.isSet("behind-proxy"))
    }
    #expect(try settings(file: words).text("quota") == "1024")
    let other = try settings(file: one)
    #expect(other.list("authoritative") == ["gems"] && !other.isSet("behind-proxy") && other.text("quota") == "1G")
  }

  @Test(
    "a value that isn't one is refused with the name of its setting and its source, and never taken for the default",
    arguments: [
      #"{"port": "many"}"#, #"{"port": 70000}"#, #"{"port": 1.5}"#, #"{"host": ""}"#, #"{"behind-proxy": "perhaps"}"#,
      #"{"quota": "lots"}"#, #"{"quota": -1}"#, #"{"authoritative": []}"#, #"{"log-level": "loud"}"#, #"{"prot": 1}"#,
      #"{"port": null}"#, "[]", "port: 1", #"{"tls": {"key": "x"}}"#, #"{"app-key": 12345678}"#,
    ])
  func wrong(text: String) throws {
    let folder = try TemporaryFolder()
    let path = try file(text, in: folder)
    #expect { try settings(file: path) } throws: { error in
      guard let failure = error as? CommandFailure else { return false }
      return failure.kind == (text.hasPrefix("{") ? .usage : .data) && failure.message.contains(path)
        && !failure.message.contains("12345678")
    }
  }

  @Test("a wrong variable is refused, a file that is missing too, and an unknown variable is reported")
  func environment() throws {
    for (name, value) in [("PORT", "x"), ("PORT", ""), ("BEHIND_PROXY", "maybe"), ("LOG_FORMAT", "xml")] {
      #expect(throws: CommandFailure.self) { try settings([:], ["KEEPSAKE_\(name)": value]) }
    }
    #expect { try settings(file: "/nowhere/at/all") } throws: { ($0 as? CommandFailure)?.kind == .noInput }
    let unknown = ServeSettings.unknownVariables(in: ["KEEPSAKE_PROT": "1", "KEEPSAKE_CONFIG": "x", "PATH": "y"])
    #expect(unknown == ["KEEPSAKE_PROT"])
  }

  @Test("issuers are read from each source and shown, and a mistyped one is refused with its source and its mistake")
  func issuers() throws {
    let folder = try TemporaryFolder()
    let (apple, own) = (
      "apple audience=com.example.garden nonce=required",
      "login issuer=https://login.test audience=garden algorithm=ES256 keys=/etc/login.pem"
    )
    let path = try file(#"{"data": "d", "identity": ["\#(apple)", "\#(own)"]}"#, in: folder)
    let one = try file(#"{"data": "d", "identity": "\#(apple)"}"#, in: folder)
    let flags: [String: ConfigValue] = [
      "data": "d", "identity": ConfigValue(.stringArray([apple, own]), isSecret: false),
    ]
    for all in [
      try settings(flags), try settings(["data": "d"], ["KEEPSAKE_IDENTITY": "\(apple),\(own)"]),
      try settings(file: path),
    ] {
      #expect(try ServeCommand.configuration(all).identityIssuers == [IdentityIssuer(apple), IdentityIssuer(own)])
      #expect(all.resolved.contains { $0.setting.name == "identity" && $0.shown == "\(apple),\(own)" })
    }
    #expect(try ServeCommand.configuration(settings(file: one)).identityIssuers.map(\.name) == ["apple"])
    for (text, mistake) in [("apple audience=x nonse=required", "nonse"), ("apple", "audience"), ("", "takes")] {
      let failure = #expect(throws: CommandFailure.self) {
        try settings(["identity": ConfigValue(.stringArray(text.isEmpty ? [] : [apple, text]), isSecret: false)])
      }
      #expect(failure?.kind == .usage && failure?.message.contains("flag --identity") == true)
      #expect(failure?.message.contains(mistake) == true)
    }
  }

  @Test("webhooks are read and given to the server, and a mistyped one is refused with its source and its mistake")
  func webhooks() throws {
    let (shop, log) = (
      "shop url=https://shop.test/hook secrets=/etc/shop kind=purchaseSettled kind=playerDeleted",
      "log url=http://127.0.0.1:9000/ secrets=/etc/log"
    )
    let all = try settings(
      ["data": "d"], ["KEEPSAKE_WEBHOOK": "\(shop),\(log)", "KEEPSAKE_WEBHOOK_CONFLICT_MINUTES": "3"])
    let configuration = try ServeCommand.configuration(all)
    #expect(try configuration.webhooks == [WebhookEndpoint(shop), WebhookEndpoint(log)])
    #expect(configuration.webhooks[0].kinds == [.purchaseSettled, .playerDeleted])
    #expect(configuration.webhooks[1].kinds.count == WebhookKind.allCases.count)
    #expect(configuration.webhookConflictMinutes == 3)
    for (text, mistake) in [
      ("shop url=http://shop.test/ secrets=/etc/shop", "https"), ("shop url=https://shop.test/", "secrets"),
      ("shop secrets=/etc/shop", "url"), ("shop url=https://a.test/ secrets=/s kind=saves", "saves"),
      ("Shop url=https://a.test/ secrets=/s", "lowercase"), ("url=https://a.test/", "name"), ("", "takes"),
    ] {
      let failure = #expect(throws: CommandFailure.self) {
        try settings(["webhook": ConfigValue(.stringArray(text.isEmpty ? [] : [text]), isSecret: false)])
      }
      #expect(failure?.kind == .usage && failure?.message.contains("flag --webhook") == true, "\(text)")
      #expect(failure?.message.contains(mistake) == true, "\(text)")
    }
  }

  @Test("secrets are never shown")
  func secrets() throws {
    let all = try settings([:], ["KEEPSAKE_APP_KEY": "a-secret-app-key"])
    #expect(all.list("app-key") == ["a-secret-app-key"])
    #expect(all.resolved.allSatisfy { !$0.shown.contains("a-secret") })
    #expect(all.resolved.contains { $0.shown == "<redacted>" })
  }

  @Test("each setting has its flag, whose help is that of the table; the server gets what was set")
  func flags() throws {
    let options = try #require(CommandDocumentTests.options()["serve"])
    #expect(options.isSuperset(of: ServeSetting.all.map(\.flag)))
    let help = ServeCommand.helpMessage(columns: 10_000)
    for setting in ServeSetting.all { #expect(help.contains(setting.help), "\(setting.name)") }
    let configuration = try ServeCommand.configuration(
      settings(
        [
          "data": "folder", "port": 5, "host": "h", "tls-certificate": "c", "tls-key": "k",
          "behind-proxy": ConfigValue(.bool(true), isSecret: false), "metrics-port": 6, "metrics-host": "m",
          "admin-port": 8, "admin-host": "a", "database": "postgres://a",
          "database-connections": 4,
          "shard": ConfigValue(.stringArray(["two=postgres://b,c/d"]), isSecret: false),
          "app-keys-file": "f", "app-key": ConfigValue(.stringArray(["one", "two"]), isSecret: true), "token-days": 7,
          "quota": "2K", "set-back": "refuse", "upload-room": "1G", "upload-files": 9,
          "authoritative": ConfigValue(.stringArray(["gems"]), isSecret: false),
        ]))
    #expect(configuration.data.lastPathComponent == "folder" && configuration.port == 5 && configuration.host == "h")
    #expect(configuration.tls?.certificate.lastPathComponent == "c" && configuration.tls?.key.lastPathComponent == "k")
    #expect(configuration.isBehindProxy && configuration.metricsPort == 6 && configuration.metricsHost == "m")
    #expect(configuration.adminPort == 8 && configuration.adminHost == "a" && configuration.saves != nil)
    #expect(configuration.appKeysFile?.lastPathComponent == "f" && configuration.appKeys == ["one", "two"])
    #expect(configuration.tokenDays == 7 && configuration.quota == 2_048 && configuration.authoritative == ["gems"])
    #expect(configuration.uploadBudget == UploadBudget(bytes: 1 << 30, files: 9))
    #expect(configuration.setBackPolicy == .refuse)
    #expect(configuration.database == "postgres://a" && configuration.shards == ["two=postgres://b,c/d"])
    #expect(configuration.databaseConnections == 4)
    for given: [String: ConfigValue] in [["data": "d", "tls-key": "k"], [:]] {
      let failure = #expect(throws: CommandFailure.self) { try ServeCommand.configuration(settings(given)) }
      #expect(failure?.kind == .usage)
    }
  }

  @Test("docs/COMMAND.md describes each setting in the words of the table, with its default")
  func documented() throws {
    let lines = try #require(CommandDocumentTests.sections()["serve"])
    let text = lines.joined(separator: " ").split(separator: " ").joined(separator: " ")
    for setting in ServeSetting.all {
      let value = if case .flag = setting.kind { "" } else { " \(setting.value.uppercased())" }
      let standard = setting.standard.map { $0 == "false" ? "" : " Default: `\($0)`." } ?? ""
      let expected = "- `\(setting.flag)\(value)`: \(setting.help)\(standard)"
      #expect(text.contains(expected), "\(expected)")
    }
  }
}
#endif
