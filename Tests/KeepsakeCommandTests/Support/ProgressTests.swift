#if Cloud
import Foundation
import TestSupport
import Testing

@testable import KeepsakeCommand

/// A program that waits for a command learns that it is at work.
@Suite struct ProgressTests {
  private struct Line: Decodable {
    var event: String
    var message: String
  }

  /// Gives the command its input only once it has told its progress, or has had 60 seconds to do so.
  private static let script = """
    mkfifo in && { "$0" "$@" <in 2>errors & } && exec 3>in || exit 99
    for i in $(seq 600); do grep -q progress errors && break; sleep 0.1; done
    printf '{"a": 1}' >&3 && exec 3>&- && wait $!
    """

  @Test(
    "with --json, a command that takes longer prints progress as objects on standard error",
    arguments: [["inspect", "-"], ["diff", "-", "a.json"], ["convert", "-", "b.plist"]])
  func objects(arguments: [String]) async throws {
    try await TemporaryFolder.with { folder in
      try Data(#"{"a": 1}"#.utf8).write(to: folder.appendingPathComponent("a.json"))
      let ended = try Tool.run(arguments + ["--json"], in: folder, by: ["sh", "-c", Self.script])
      #expect(ended.status == 0, "\(ended.errors)")
      #expect(try JSONSerialization.jsonObject(with: ended.output) is [String: Any])
      let errors = try Data(contentsOf: folder.appendingPathComponent("errors"))
      let lines = try errors.split(separator: 0x0A).map { try JSONDecoder().decode(Line.self, from: $0) }
      #expect(lines.first?.event == "progress" && lines.first?.message.isEmpty == false)
    }
  }
}
#endif
