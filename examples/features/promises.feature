Feature: Promises of our team

  @TEAM-1 @MUST
  Rule: Six requests one after the other are admitted to every user at rest

    Scenario: six requests on the smallest plan
      Given a rested user on the smallest plan
      When they send 6 valid requests
      Then none of them was rejected
      And each answer has the header RateLimit-Remaining

    Scenario: what is in flight does not count against it
      Given a user with all permits but one in flight
      When they send 6 valid requests
      Then none of them was rejected

  @TEAM-2 @MUST
  Rule: Successes are JSON

    Scenario: a valid request
      Given a user with tokens to spare
      When they send 1 valid request
      Then each answer has the header Content-Type with the text application/json

  @TEAM-3 @DECIDED
  Rule: Answers do not say what the server is made of

    Scenario: a rate rejection
      Given an emptied user on the smallest plan
      When they send a valid request
      Then the answer is a rate rejection
      And no answer has the header Server
