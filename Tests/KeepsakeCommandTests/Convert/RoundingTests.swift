#if Cloud
import ArgumentParser
import Foundation
import TestSupport
import Testing

@testable import KeepsakeCommand

/// Numbers of JSON with more digits than a 64-bit number holds.
@Suite struct RoundingTests {
  @Test("a number that is rounded is reported with its place, whatever the output is; others aren't")
  func report() async throws {
    try await TemporaryFolder.with { folder in
      let path = { folder.appendingPathComponent($0).path }
      let text = """
        {"long": 3.14159265358979323846,
         "exact": [0.1, 1.50, 2e3, 1e-7, 0.0, -0.0, 100000000000000000000.0, 12345678901234567890, 5e-324],
         "another": 0.123456789012345678901}
        """
      try Data(text.utf8).write(to: URL(fileURLWithPath: path("a.json")))
      for output in ["b.json", "b.plist", "b.keepsake"] {
        let answer = try ConvertCommand.parse([path("a.json"), path(output)]).convert()
        #expect(answer.losses.map(\.count) == [2] && answer.losses.map(\.path) == ["line 1, column 10"], "\(output)")
        #expect(answer.lossLines.first?.hasPrefix("not preserved: 2 numbers with more digits") == true)
      }
      try Data("[0.1, 2.50]".utf8).write(to: URL(fileURLWithPath: path("c.json")))
      #expect(try ConvertCommand.parse([path("c.json"), path("d.json")]).convert().losses.isEmpty)
    }
  }
}
#endif
