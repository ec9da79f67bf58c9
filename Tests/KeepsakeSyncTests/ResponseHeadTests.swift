import Testing

@testable import KeepsakeSync

@Suite("The head of a response") struct ResponseHeadTests {
  private func steps(_ lines: [String]) -> [ResponseHead.Step] {
    var head = ResponseHead()
    return lines.map { head.take($0 + "\r\n") }
  }

  @Test("a head ends with an empty line; a field that comes twice has both values, whatever the case of its name")
  func fields() {
    let all = steps(["HTTP/1.1 200 OK", "A: 1", "b:2 ", "a:  3:4", "no field", "C:", ""])
    #expect(all.dropLast().allSatisfy { $0 == .more })
    #expect(all.last == .complete(status: 200, fields: ["A": "1, 3:4", "b": "2", "C": ""]))
    #expect(steps(["HTTP/2 404", ""]).last == .complete(status: 404, fields: [:]), "without a reason")
  }

  @Test("an interim response isn't the response, and what follows a body isn't one either")
  func others() {
    let lines = ["HTTP/1.1 103 Early Hints", "Link: x", "", "HTTP/1.1 201 Created", "A: 1", "", "Trailer: x", ""]
    let complete = ResponseHead.Step.complete(status: 201, fields: ["A": "1"])
    #expect(steps(lines) == [.more, .more, .more, .more, .more, complete, .more, .more])
  }

  @Test("a first line without a status, and heads that don't end, are invalid")
  func invalid() {
    for line in ["HTTP/1.1", "HTTP/1.1 OK", "HTTP/1.1 99 X", "HTTP/1.1 1000 X", "HTTP/1.1 -1"] {
      #expect(steps([line]) == [.invalid], "\(line)")
    }
    #expect(steps(["HTTP/1.1 101 Switching", ""]).last == .complete(status: 101, fields: [:]))
    let many = steps(["HTTP/1.1 200 OK"] + (0...ResponseHead.fieldLimit).map { "A\($0): x" })
    #expect(many.dropLast().allSatisfy { $0 == .more } && many.last == .invalid)
    let field = "A: " + String(repeating: "x", count: 995)
    let all = steps(["HTTP/1.1 200 OK"] + Array(repeating: field, count: 70))
    #expect(all.first == .more && all.last == .invalid)
    #expect(all.firstIndex(of: .invalid) == ResponseHead.limit / 1_000 + 1)
    #expect(steps(["HTTP/1.1 200 OK", ""] + Array(repeating: field, count: 70)).last == .invalid, "after the body")
  }
}
